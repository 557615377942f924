//! What a bare PUB socket delivers, and how much of that a publisher delivers without losing anything.

use super::clock::now;
use super::load::{Load, Window};
use super::run::{self, Length, Who};
use super::subscriber::Subscriber;
use crate::support::peer::{Settings, Stored, now_ms};
use crate::support::{ENDPOINT, KEY, LINGER, SEND_HWM, key, object};
use serde::Serialize as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Events in a message of single-event calls: a batch is taken while one more call of two would fit into 64.
const EVENTS: usize = 63;

/// Events per second that a bare socket delivers in messages of the usual size, sent from a thread that does nothing else.
pub fn raw(length: Length) -> f64 {
    let payload = payload();
    let socket = zmq::Context::new().socket(zmq::PUB).expect("a PUB socket");
    socket.set_sndhwm(SEND_HWM as i32).expect("SNDHWM");
    socket.set_linger(LINGER.as_millis() as i32).expect("LINGER");
    socket.bind(ENDPOINT).expect("a free port");
    let endpoint = socket.get_last_endpoint().expect("an endpoint").expect("text");
    let mut subscriber = Subscriber::spawn(&endpoint, "first");
    let (stop, flood) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| send(socket, &payload, &flood, &stop));
        // The sender probes until it is told to flood.
        subscriber.wait_joined(|| {});
        let from = now() + length.warm_up.as_nanos() as u64;
        let window = Window { from, until: from + length.window.as_nanos() as u64 };
        subscriber.tell_window(window);
        flood.store(true, Ordering::Relaxed);
        super::clock::sleep_until(window.until);
        stop.store(true, Ordering::Relaxed);
    });
    subscriber.end().events as f64 / length.window.as_secs_f64()
}

fn send(socket: zmq::Socket, payload: &[u8], flood: &AtomicBool, stop: &AtomicBool) {
    let mut sequence = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        sequence += 1;
        let frames = [&[][..], &sequence.to_be_bytes(), payload];
        socket.send_multipart(frames, zmq::DONTWAIT).expect("a PUB socket that never blocks");
        if !flood.load(Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

fn payload() -> Vec<u8> {
    let settings = Settings::new(1);
    let key = key(KEY, 7);
    let timestamp = now_ms();
    let events: Vec<_> = (0..EVENTS as u64).map(|n| Stored::new(&settings, object(&key), n << 32, timestamp)).collect();
    let mut payload = Vec::new();
    let mut serializer = rmp_serde::Serializer::new(&mut payload).with_struct_map();
    (timestamp, events, 0).serialize(&mut serializer).expect("a batch that can be encoded");
    payload
}

/// The largest share of `ceiling`, in steps of 0.05, at which a paced load is delivered without losing an event.
pub fn lossless_share(who: Who, producers: usize, ceiling: f64, length: Length) -> f64 {
    for percent in (30..=100).rev().step_by(5) {
        let rate = ceiling * f64::from(percent) / 100.0;
        let sample = run::run(who, Load { timed: false, ..Load::new(producers, Some(rate)) }, length, 1);
        if sample.lost == 0 && sample.evicted == 0 && sample.delivered_per_s >= rate * 0.98 {
            return sample.delivered_per_s / ceiling;
        }
    }
    0.0
}
