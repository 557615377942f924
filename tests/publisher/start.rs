//! What a publisher says to bad settings and endpoints, and that it leaves nothing behind.

#[cfg(feature = "zmq")]
use test_support::skipped;

use kv_events::{Config, ConfigError, MediaSet, Object, Outcome, Publisher, StartError};

fn start(endpoint: &str) -> Result<Publisher, StartError> {
    Publisher::start(crate::common::config(endpoint, "b"))
}

#[test]
fn a_publisher_is_shared_by_reference() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Publisher>();
}

#[test]
fn the_switch_the_endpoint_and_the_backend_id() {
    // All eight combinations
    for endpoint in ["", "tcp://127.0.0.1:0"] {
        for backend in ["", "b"] {
            let config = Config::default().bind_endpoint(endpoint).backend_id(backend);
            let off = Publisher::start(config.clone()).unwrap();
            assert!(!off.is_enabled() && off.bound_endpoint().is_none());
            assert_eq!(off.committed(&Object::new("t", "k"), MediaSet::CPU), Outcome::Disabled);

            let on = Publisher::start(config.enabled(true));
            match (endpoint, backend) {
                ("", _) => assert!(on.unwrap_err().to_string().contains("kv_events_bind_endpoint")),
                (_, "") => assert!(on.unwrap_err().to_string().contains("kv_events_backend_id")),
                _ => assert_eq!(on.unwrap().is_enabled(), cfg!(feature = "zmq")),
            }
        }
    }
}

#[test]
fn settings_out_of_range_are_errors() {
    let config = || crate::common::config("tcp://127.0.0.1:0", "b");
    for config in [config().queue_capacity(0), config().eviction_burst(0), config().queue_capacity(usize::MAX)] {
        let error = Publisher::start(config).unwrap_err();
        assert!(matches!(error, StartError::Config(ConfigError::OutOfRange { .. })), "{error}");
    }
    for capacity in [1, 2, 3, 1000, 1 << 20] {
        assert!(Publisher::start(config().queue_capacity(capacity)).is_ok());
    }
}

#[cfg(feature = "serde")]
#[test]
fn settings_are_read_by_their_flag_names_and_no_others() {
    let config: Config = serde_json::from_str(
        r#"{"enable_kv_events": true, "kv_events_bind_endpoint": "tcp://127.0.0.1:0", "kv_events_backend_id": "b",
            "kv_events_eviction_burst": 16, "kv_events_wait_strategy": "poll:100us", "kv_events_heartbeat_interval": 500}"#,
    )
    .unwrap();
    let built = Config::new("tcp://127.0.0.1:0", "b")
        .eviction_burst(16)
        .wait_strategy(kv_events::WaitStrategy::Poll(std::time::Duration::from_micros(100)))
        .heartbeat_interval(std::time::Duration::from_millis(500));
    assert_eq!(config, built);
    let error = serde_json::from_str::<Config>(r#"{"kv_events_queue_size": 1}"#).unwrap_err().to_string();
    assert!(error.contains("kv_events_queue_size"), "{error}");
    let written = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<Config>(&written).unwrap(), config);
}

#[cfg(not(feature = "zmq"))]
#[test]
fn without_a_socket_everything_is_there_and_does_nothing() {
    let publisher = start("tcp://127.0.0.1:0").unwrap();
    assert!(!publisher.is_enabled());
    let object = Object::new("t", "k");
    assert_eq!(publisher.committed(&object, MediaSet::BOTH), Outcome::Disabled);
    assert_eq!(publisher.cleared("t"), Outcome::Disabled);
    let sweep = publisher.sweep("t");
    sweep.removed(&object, kv_events::Before::mutation(MediaSet::CPU));
    assert_eq!(sweep.finish(), kv_events::SweepOutcome::Cleared(Outcome::Disabled));
    assert!(publisher.stop(std::time::Duration::ZERO).closed);
    assert_eq!(publisher.status().published_events, 0);
}

#[cfg(feature = "zmq")]
mod with_a_socket {
    use super::*;
    use crate::common::sub::Sub;
    use kv_events::EndpointError;
    use std::net::TcpListener;
    use std::time::Duration;
    #[cfg(target_os = "linux")]
    use test_support::alone;
    use test_support::alone::threads_and_files;

    fn cause(endpoint: &str) -> EndpointError {
        match start(endpoint) {
            Err(StartError::Endpoint { endpoint: named, cause }) => {
                assert_eq!(named, endpoint, "the error names the endpoint");
                cause
            }
            other => panic!("{endpoint:?}: {other:?}"),
        }
    }

    #[test]
    fn malformed_endpoints_are_named_with_their_cause() {
        for endpoint in [
            "127.0.0.1:5557",
            "udp://127.0.0.1:5557",
            "tcp://127.0.0.1:70000",
            "tcp://127.0.0.1:5557x",
            "tcp://127.0.0.1:5557 ",
            " tcp://127.0.0.1:5557",
            "ipc:///tmp/kv-events.sock\n",
            "tcp://127.0.0.1:55\x0057",
            "tcp://127.0.0.1:5557\0",
            "tcp://",
            "inproc://x",
        ] {
            let malformed = matches!(cause(endpoint), EndpointError::Malformed(_));
            assert!(malformed, "{endpoint:?}");
        }
        assert_eq!(cause("tcp://localhost:0"), EndpointError::NotLocal);
        assert_eq!(cause("tcp://no-such-interface:0"), EndpointError::NotLocal);
        assert_eq!(cause("tcp://192.0.2.1:0"), EndpointError::NotLocal);
    }

    #[test]
    fn a_taken_port_is_an_error_and_free_again_afterwards() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
        assert_eq!(cause(&endpoint), EndpointError::InUse);
        let text = start(&endpoint).unwrap_err().to_string();
        assert!(text.starts_with(&format!("endpoint {endpoint} is in use")), "{text}");
        drop(listener);
        let publisher = start(&endpoint).unwrap();
        assert_eq!(cause(&endpoint), EndpointError::InUse, "by another publisher of this process as well");
        assert!(publisher.stop(Duration::from_secs(60)).closed);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_failed_start_leaves_no_thread_and_no_file() {
        if !alone!("a_failed_start_leaves_no_thread_and_no_file") {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = format!("tcp://{}", listener.local_addr().unwrap());
        let _ = start(&taken);
        let before = threads_and_files();
        for _ in 0..20 {
            assert!(start(&taken).is_err());
            assert!(start("tcp://localhost:0").is_err());
        }
        assert_eq!(threads_and_files(), before);
    }

    #[test]
    fn ports_are_chosen_and_told_and_any_address_is_bound() {
        for endpoint in ["tcp://127.0.0.1:0", "tcp://127.0.0.1:*", "tcp://*:0", "tcp://0.0.0.0:0"] {
            let (one, two) = (start(endpoint).unwrap(), start(endpoint).unwrap());
            assert_ne!(one.bound_endpoint(), two.bound_endpoint());
            for publisher in [&one, &two] {
                let bound = publisher.bound_endpoint().unwrap();
                let port: u16 = bound.rsplit_once(':').unwrap().1.parse().unwrap();
                let sub = Sub::connect(&format!("tcp://127.0.0.1:{port}"));
                deliver(publisher, &sub);
            }
        }
    }

    #[test]
    fn ipv6_is_switched_on_where_the_address_asks_for_it() {
        if std::net::TcpListener::bind("[::1]:0").is_err() {
            skipped("this machine has no IPv6 loopback");
            return;
        }
        let publisher = start("tcp://[::1]:0").unwrap();
        deliver(&publisher, &Sub::connect(publisher.bound_endpoint().unwrap()));
    }

    #[cfg(unix)]
    #[test]
    fn ipc_paths() {
        let folder = std::env::temp_dir().join(format!("kv-events-start-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let endpoint = |name: &str| format!("ipc://{}", folder.join(name).display());

        std::fs::write(folder.join("file"), "precious").unwrap();
        assert!(matches!(cause(&endpoint("file")), EndpointError::Path(_)));
        assert_eq!(std::fs::read_to_string(folder.join("file")).unwrap(), "precious");
        assert!(matches!(cause(&endpoint("missing/x.sock")), EndpointError::Path(_)));
        assert!(matches!(cause(&endpoint(&"x".repeat(200))), EndpointError::Path(_)));

        let live = start(&endpoint("live.sock")).unwrap();
        assert_eq!(cause(&endpoint("live.sock")), EndpointError::InUse);
        deliver(&live, &Sub::connect(live.bound_endpoint().unwrap()));

        drop(std::os::unix::net::UnixListener::bind(folder.join("dead.sock")).unwrap());
        let heir = start(&endpoint("dead.sock")).unwrap();
        deliver(&heir, &Sub::connect(heir.bound_endpoint().unwrap()));
        drop((live, heir));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Whatever it is that the system says, also what libzmq's wrapper knows no name for.
    #[cfg(unix)]
    #[test]
    fn what_the_system_refuses_is_said_in_its_words() {
        for endpoint in ["ipc:///sys/kv-events.sock", "ipc:///proc/kv-events.sock"] {
            let error = start(endpoint).unwrap_err();
            assert!(matches!(error, StartError::Endpoint { .. }), "{error:?}");
            assert!(error.to_string().starts_with(&format!("endpoint {endpoint} cannot be")), "{error}");
        }
    }

    /// Its queue is full: somebody who waits to be let in waits for ever.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_path_whose_holder_lets_nobody_in_is_in_use() {
        let path = std::env::temp_dir().join(format!("kv-events-hung-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let hung = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
        hung.bind(&socket2::SockAddr::unix(&path).unwrap()).unwrap();
        hung.listen(0).unwrap();
        for _ in 0..4 {
            assert_eq!(cause(&format!("ipc://{}", path.display())), EndpointError::InUse);
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn ranks_label_the_stream_and_nothing_else() {
        for rank in 0..4 {
            let publisher = Publisher::start(crate::common::config("tcp://127.0.0.1:0", "b").dp_rank(rank)).unwrap();
            let sub = Sub::of(&publisher);
            publisher.cleared("t");
            let message = sub.next();
            assert_eq!(message.dp_rank, u64::from(rank));
            assert_eq!(message.events[0].number("dp_rank"), u64::from(rank));
        }
    }

    #[test]
    fn the_high_water_mark_is_the_one_asked_for() {
        let publisher = Publisher::start(crate::common::config("tcp://127.0.0.1:0", "b").send_hwm(7)).unwrap();
        assert_eq!(publisher.status().send_hwm, 7);
    }

    fn deliver(publisher: &Publisher, sub: &Sub) {
        let arrived = (0..200).any(|_| {
            publisher.cleared("t");
            sub.try_next(100).is_some()
        });
        assert!(arrived, "{:?}", publisher.bound_endpoint());
    }
}
