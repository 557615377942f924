//! Peers that are no good subscribers.

use crate::words::Words;
use crate::zmtp::{self, shake_hands};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Connections of a storm at the least.
pub const STORM: usize = 100;

/// A process of `sockets` subscribers that connect, wait for a message each, and leave, until told that it is enough.
pub fn storm(words: &Words) {
    let sockets = words.number("sockets") as usize;
    let enough = AtomicBool::new(false);
    let mut connections = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = io::stdin().read_line(&mut String::new());
            enough.store(true, Ordering::Release);
        });
        while connections < STORM || !enough.load(Ordering::Acquire) {
            let context = zmq::Context::new();
            let subs: Vec<zmq::Socket> = (0..sockets).map(|_| subscribe(&context, words.text("endpoint"))).collect();
            connections += subs.iter().filter(|sub| sub.recv_bytes(0).is_ok()).count();
        }
    });
    println!("report connections={connections}");
}

fn subscribe(context: &zmq::Context, endpoint: &str) -> zmq::Socket {
    let sub = context.socket(zmq::SUB).unwrap();
    sub.set_linger(0).unwrap();
    sub.set_rcvtimeo(5_000).unwrap();
    sub.set_subscribe(b"").unwrap();
    sub.connect(endpoint).unwrap();
    sub
}

/// Connects as a subscriber of everything, reads some of what comes, and resets the connection with the rest unread.
pub fn reset_within_a_message(endpoint: &str) -> io::Result<()> {
    let mut stream = zmtp::connect(endpoint);
    shake_hands(&mut stream)?;
    stream.write_all(&[0, 1, 1])?; // a message of one byte: subscribe to everything
    let mut some = [0; 1500];
    stream.read_exact(&mut some)?;
    zmtp::reset(stream);
    Ok(())
}

/// Connects, subscribes to `topics` topics, sends a PING behind them, and resets the connection after `pause`.
pub fn ping_and_vanish(endpoint: &str, topics: u8, pause: Duration) -> io::Result<()> {
    let mut stream = zmtp::connect(endpoint);
    shake_hands(&mut stream)?;
    let mut frames: Vec<u8> = (0..topics).flat_map(|topic| zmtp::subscription(&[b't', topic])).collect();
    frames.extend_from_slice(b"\x04\x07\x04PING\0\x0a");
    stream.write_all(&frames)?;
    std::thread::sleep(pause);
    zmtp::reset(stream);
    Ok(())
}

/// A process of one subscriber with heartbeats that takes eight topics more every few milliseconds, until it is killed.
pub fn heartbeats(words: &Words) {
    let sub = zmq::Context::new().socket(zmq::SUB).unwrap();
    sub.set_heartbeat_ivl(words.number("interval") as i32).unwrap();
    sub.set_heartbeat_timeout(5_000).unwrap();
    sub.set_subscribe(b"kv@a").unwrap();
    sub.connect(words.text("endpoint")).unwrap();
    for burst in 0.. {
        for topic in 0..8 {
            sub.set_subscribe(format!("kv@model-{burst}-{topic}").as_bytes()).unwrap();
        }
        if burst == 8 {
            println!("subscribed");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A process of peers that mean no good, until told that it is enough: with `what=garbage` 500 that connect and stay silent
/// and one after another that sends garbage and leaves, with `what=topics` some (`peers`, else one) that subscribe without end
/// to topics of `bytes` (else 20).
pub fn hostile(words: &Words) {
    let address = words.text("endpoint").trim_start_matches("tcp://");
    let enough = AtomicBool::new(false);
    let going = &|| !enough.load(Ordering::Acquire);
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = io::stdin().read_line(&mut String::new());
            enough.store(true, Ordering::Release);
        });
        println!("begun");
        if words.text("what") == "topics" {
            let (peers, bytes) = (words.number("peers").max(1), words.number("bytes").max(20) as usize);
            let subscribe = |peer| move || subscribe_without_end(address, peer, bytes, going).unwrap_or(0);
            let threads: Vec<_> = (0..peers).map(|peer| scope.spawn(subscribe(peer))).collect();
            return threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        }
        let _silent: Vec<_> = (0..500).map_while(|_| TcpStream::connect(address).ok()).collect();
        let mut connections = 0;
        while connections < 10 || going() {
            if let Ok(mut stream) = TcpStream::connect(address) {
                let _ = stream.write_all(&[b'x'; 10_000]);
                connections += 1;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        connections
    });
    println!("report done={done}");
}

/// Subscribes to topics of `bytes`, each one new, and returns how many were sent.
fn subscribe_without_end(address: &str, peer: u64, bytes: usize, going: impl Fn() -> bool) -> io::Result<u64> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.set_write_timeout(Some(Duration::from_millis(100)))?;
    shake_hands(&mut stream)?;
    let mut sent = 0_u64;
    let mut many = Vec::new();
    for number in 0_u64.. {
        // No two begin alike, so that nothing of them can be kept once for all.
        let first = (number << 8 | peer).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut topic = format!("{first:020}").into_bytes();
        topic.resize(bytes, b'x');
        many.extend_from_slice(&crate::zmtp::subscription(&topic));
        if many.len() > 16_000 {
            if sent > 100 && !going() {
                break;
            }
            let mut rest = &many[..];
            while !rest.is_empty() && (sent <= 100 || going()) {
                match stream.write(rest) {
                    Ok(written) => rest = &rest[written..],
                    // The other side does not read: that is its good right.
                    Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                    Err(error) => return Err(error),
                }
            }
            sent += (many.len() - rest.len()) as u64 / (bytes as u64 + 3);
            many.clear();
        }
    }
    Ok(sent)
}
