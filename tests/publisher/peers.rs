//! Who may connect, what becomes of peers that vanish, and what the status says when nobody can.
#![cfg(all(feature = "zmq", target_os = "linux"))]

use crate::common::sub::{Sub, loopback};
use crate::common::wait_until;
use kv_events::subscriber::{Settings, Subscriber};
use kv_events::{Publisher, StartError};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;
use test_support::alone;
use test_support::zmtp::{connect, greet, is_closed_by_peer, shake_hands, subscription};

fn endpoint(publisher: &Publisher) -> &str {
    publisher.bound_endpoint().unwrap()
}

/// Whether a subscriber at `endpoint` hears something within a second.
fn hears(publisher: &Publisher, endpoint: &str) -> bool {
    let sub = Sub::connect(endpoint);
    (0..100).any(|_| {
        publisher.cleared("t");
        sub.try_next(10).is_some()
    })
}

#[test]
fn those_that_are_named_may_connect() {
    for peers in [&["127.0.0.1"][..], &["10.0.0.0/8", "127.0.0.0/8"], &["0.0.0.0/0"], &[]] {
        let publisher = Publisher::start(loopback().allow_peers(peers.iter().copied())).unwrap();
        wait_until("it hears", || hears(&publisher, endpoint(&publisher)));
        assert_eq!(publisher.status().refused_peers, 0, "{peers:?}");
        assert!(publisher.stop(Duration::from_secs(60)).closed);
    }
}

#[test]
fn others_are_refused_and_counted_and_cost_the_named_ones_nothing() {
    let publisher = Publisher::start(crate::common::config("tcp://0.0.0.0:0", "b").allow_peers(["127.0.0.2"])).unwrap();
    let port = endpoint(&publisher).rsplit_once(':').unwrap().1;
    let address = format!("tcp://127.0.0.1:{port}");
    // From 127.0.0.1, whatever they speak.
    let mut raw = connect(&address);
    greet(&mut raw).unwrap();
    let ready = b"\x05READY\x0bSocket-Type\0\0\0\x03SUB";
    raw.write_all(&[4, ready.len() as u8]).unwrap();
    raw.write_all(ready).unwrap();
    let mut answer = [0; 8];
    raw.read_exact(&mut answer).unwrap();
    assert_eq!(&answer[2..8], b"\x05ERROR");
    wait_until("it is counted", || publisher.status().refused_peers == 1);
    let mut old = connect(&address);
    old.write_all(b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x02\0\0").unwrap(); // ZMTP 2
    assert!(is_closed_by_peer(&mut old));
    assert!(!hears(&publisher, &address));
    let mut subscriber = Subscriber::connect([&address], &Settings::default()).unwrap();
    publisher.cleared("t");
    assert!(subscriber.recv_timeout(Duration::from_millis(300)).is_err());
    wait_until("each of them is counted", || publisher.status().refused_peers >= 3);
    // From 127.0.0.2.
    let named = zmq::Context::new().socket(zmq::SUB).unwrap();
    named.set_subscribe(b"").unwrap();
    named.set_rcvtimeo(10).unwrap();
    named.connect(&format!("tcp://127.0.0.2:0;127.0.0.1:{port}")).unwrap();
    wait_until("the named one hears", || {
        publisher.cleared("t");
        named.recv_multipart(0).is_ok()
    });
    assert!(is_closed_by_peer(&mut raw), "at the latest when the handshake should be over");
    assert!(publisher.status().healthy && publisher.status().endpoint_fault.is_none());
    assert!(publisher.stop(Duration::from_secs(60)).closed);
}

/// A crowd of refused ones, some of whom do not wait for the answer.
#[test]
fn a_crowd_of_refused_peers_keeps_the_sender_from_nothing() {
    let publisher = Publisher::start(crate::common::config("tcp://0.0.0.0:0", "b").allow_peers(["127.0.0.2"])).unwrap();
    let address = format!("tcp://127.0.0.1:{}", endpoint(&publisher).rsplit_once(':').unwrap().1);
    let streams: Vec<TcpStream> = (0..400)
        .map(|number| {
            let mut stream = connect(&address);
            let _ = stream.write_all(b"\xff\0\0\0\0\0\0\0\0\x7f\x03\0NULL");
            let _ = stream.write_all(&[0; 48]);
            if number % 3 == 0 {
                let _ = stream.shutdown(std::net::Shutdown::Both);
            }
            stream
        })
        .collect();
    for number in 1..=500 {
        publisher.cleared("t");
        wait_until("it is sent", || publisher.status().published_events == number);
    }
    wait_until("all that stayed are counted", || publisher.status().refused_peers >= 266);
    drop(streams);
    assert!(publisher.stop(Duration::from_secs(60)).closed);
}

#[test]
fn a_list_for_an_endpoint_without_addresses_is_an_error() {
    let config = crate::common::config("ipc:///tmp/kv-events-peers.sock", "b").allow_peers(["127.0.0.1"]);
    let error = Publisher::start(config).unwrap_err();
    assert!(matches!(error, StartError::Config(_)) && error.to_string().contains("kv_events_allow_peers"), "{error}");
}

fn option(socket: RawFd, level: libc::c_int, name: libc::c_int) -> libc::c_int {
    let mut value: libc::c_int = 0;
    let mut len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` is valid for the call to write `len` bytes to.
    let got = unsafe { libc::getsockopt(socket, level, name, (&raw mut value).cast(), &raw mut len) };
    if got == 0 { value } else { -1 }
}

/// The publisher's side of `peer`, which is in this process too.
fn accepted(peer: &TcpStream) -> RawFd {
    let names = std::fs::read_dir("/proc/self/fd").unwrap();
    let numbers: Vec<RawFd> = names.map(|name| name.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
    let is_it = |number: &RawFd| {
        // SAFETY: only asked for its addresses and never closed here.
        let stream =
            std::mem::ManuallyDrop::new(unsafe { <TcpStream as std::os::fd::FromRawFd>::from_raw_fd(*number) });
        stream.peer_addr().ok() == peer.local_addr().ok() && stream.as_raw_fd() != peer.as_raw_fd()
    };
    numbers.into_iter().find(is_it).expect("the accepted socket")
}

#[test]
fn connections_are_kept_alive_and_end_within_a_minute() {
    if !alone!("connections_are_kept_alive_and_end_within_a_minute") {
        return;
    }
    for (bind, keepalive, expected) in [
        ("tcp://127.0.0.1:0", None, (1, 15, 7, 4, 45_000)),
        ("tcp://0.0.0.0:0", Some(30_000), (1, 10, 5, 4, 30_000)),
        ("tcp://127.0.0.1:0", Some(0), (0, 7200, 75, 9, 0)),
    ] {
        let mut config = crate::common::config(bind, "b");
        if let Some(ms) = keepalive {
            config = config.keepalive(Duration::from_millis(ms));
        }
        let publisher = Publisher::start(config).unwrap();
        let port = endpoint(&publisher).rsplit_once(':').unwrap().1;
        let mut peer = connect(&format!("tcp://127.0.0.1:{port}"));
        shake_hands(&mut peer).unwrap();
        let socket = accepted(&peer);
        let tcp = |name| option(socket, libc::IPPROTO_TCP, name);
        let found = (
            option(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE),
            tcp(libc::TCP_KEEPIDLE),
            tcp(libc::TCP_KEEPINTVL),
            tcp(libc::TCP_KEEPCNT),
            tcp(libc::TCP_USER_TIMEOUT),
        );
        assert_eq!(found, expected, "{bind}");
        assert!(found.0 == 0 || found.1 + found.2 * found.3 <= 60);
    }
}

#[test]
fn an_ipc_path_that_is_gone_is_told_and_costs_no_subscriber_anything() {
    let path = std::env::temp_dir().join(format!("kv-events-peers-{}.sock", std::process::id()));
    let publisher = Publisher::start(crate::common::config(format!("ipc://{}", path.display()), "b")).unwrap();
    let sub = Sub::connect(endpoint(&publisher));
    let is_served = || {
        publisher.cleared("t");
        sub.try_next(10).is_some()
    };
    wait_until("it is served", is_served);
    assert_eq!((publisher.status().endpoint_faults, publisher.status().endpoint_fault), (0, None));

    std::fs::remove_file(&path).unwrap();
    wait_until("it is told", || publisher.status().endpoint_fault.is_some());
    let status = publisher.status();
    assert!(status.healthy && status.endpoint_faults == 1, "{status:?}");
    assert!(status.endpoint_fault.unwrap().contains("is gone"));
    wait_until("it is served still", is_served);

    std::fs::write(&path, "something else").unwrap();
    wait_until("the other is told", || publisher.status().endpoint_faults == 2);
    assert!(publisher.status().endpoint_fault.unwrap().contains("something else"));
    assert!(publisher.stop(Duration::from_secs(60)).closed);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn want_of_descriptors_is_told_while_it_lasts() {
    if !alone!("want_of_descriptors_is_told_while_it_lasts") {
        return;
    }
    let publisher = Publisher::start(loopback()).unwrap();
    let mut peer = connect(endpoint(&publisher));
    shake_hands(&mut peer).unwrap();
    peer.write_all(&subscription(b"")).unwrap();
    peer.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
    let limit = libc::rlimit { rlim_cur: 200, rlim_max: 200 };
    // SAFETY: `limit` is valid and only read.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    // Peers in this process use up two descriptors each.
    let address = endpoint(&publisher).trim_start_matches("tcp://");
    let mut crowd: Vec<TcpStream> = std::iter::from_fn(|| TcpStream::connect(address).ok()).take(300).collect();
    wait_until("it is told", || publisher.status().endpoint_fault.is_some());
    let status = publisher.status();
    assert!(status.healthy && status.endpoint_faults >= 1, "{status:?}");
    assert!(status.endpoint_fault.unwrap().contains("open files"));
    wait_until("it is served still", || {
        publisher.cleared("t");
        peer.read(&mut [0; 4096]).is_ok()
    });
    crowd.clear();
    wait_until("it is over", || publisher.status().endpoint_fault.is_none());
    assert!(publisher.stop(Duration::from_secs(60)).closed);
}
