//! A publisher that a test holds by the hand: it sends exactly the frames it is told to, once it has seen the
//! subscription that they are meant for.

/// Generous: only ever reached by a test that fails.
pub const PATIENCE_MS: i32 = 60_000;

pub struct Publisher {
    pub context: zmq::Context,
    pub socket: zmq::Socket,
    pub endpoint: String,
}

impl Publisher {
    /// Bound to a free port.
    #[allow(clippy::new_without_default, reason = "it starts threads")]
    pub fn new() -> Self {
        Publisher::bound_to("tcp://127.0.0.1:*", 0)
    }

    /// Bound to this endpoint, as soon as its port is free, with this high-water mark (0 for none).
    pub fn bound_to(endpoint: &str, send_hwm: i32) -> Self {
        let context = zmq::Context::new();
        // Unlike PUB, XPUB hands over the subscriptions that reach it, and so tells when somebody listens.
        let socket = context.socket(zmq::XPUB).unwrap();
        socket.set_xpub_verbose(true).unwrap();
        socket.set_linger(0).unwrap();
        socket.set_sndhwm(send_hwm).unwrap();
        socket.set_rcvtimeo(PATIENCE_MS).unwrap();
        let begun = std::time::Instant::now();
        while let Err(error) = socket.bind(endpoint) {
            assert_eq!(error, zmq::Error::EADDRINUSE);
            assert!(begun.elapsed().as_millis() < PATIENCE_MS as u128, "{endpoint} does not become free");
            std::thread::yield_now();
        }
        let endpoint = socket.get_last_endpoint().unwrap().unwrap();
        Publisher { context, socket, endpoint }
    }

    /// Waits until a subscription has arrived: from here on nothing is lost.
    pub fn await_subscription(&self) {
        while !self.is_subscription(0) {}
    }

    /// Likewise, while `meanwhile` is called again and again: libzmq subscribes again after a connection was lost only
    /// inside calls on the subscriber's socket.
    pub fn await_resubscription(&self, mut meanwhile: impl FnMut()) {
        let begun = std::time::Instant::now();
        while !self.is_subscription(zmq::DONTWAIT) {
            assert!(begun.elapsed().as_millis() < PATIENCE_MS as u128, "no subscription arrives");
            meanwhile();
        }
    }

    fn is_subscription(&self, flags: i32) -> bool {
        match self.socket.recv_bytes(flags) {
            Ok(frame) => frame[0] == 1,
            Err(error) => {
                assert!(flags == zmq::DONTWAIT && error == zmq::Error::EAGAIN, "no subscription arrives");
                false
            }
        }
    }

    pub fn send_frames(&self, frames: &[&[u8]]) {
        self.socket.send_multipart(frames, 0).unwrap();
    }

    pub fn send(&self, sequence: u64, payload: &[u8]) {
        self.send_to(b"", sequence, payload);
    }

    pub fn send_to(&self, topic: &[u8], sequence: u64, payload: &[u8]) {
        self.send_frames(&[topic, &sequence.to_be_bytes(), payload]);
    }
}

/// A batch as this crate's publisher sends it, of `stored` events with the ids `first_id..first_id + keys.len()`.
pub fn master(ms: u64, first_id: u64, keys: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    rmp::encode::write_array_len(&mut out, 3).unwrap();
    rmp::encode::write_uint(&mut out, ms).unwrap();
    rmp::encode::write_array_len(&mut out, keys.len() as u32).unwrap();
    for (id, key) in (first_id..).zip(keys) {
        rmp::encode::write_map_len(&mut out, 6).unwrap();
        for (name, value) in [("event_id", id), ("timestamp", ms)] {
            rmp::encode::write_str(&mut out, name).unwrap();
            rmp::encode::write_uint(&mut out, value).unwrap();
        }
        for (name, value) in
            [("event_type", "stored"), ("tenant_id", "default"), ("medium", "cpu"), ("object_key", key)]
        {
            rmp::encode::write_str(&mut out, name).unwrap();
            rmp::encode::write_str(&mut out, value).unwrap();
        }
    }
    rmp::encode::write_uint(&mut out, 0).unwrap();
    out
}

/// A batch as engines send it: `[seconds, [["BlockRemoved", [hash], "GPU"] ...]]`.
pub fn engine(seconds: f64, hashes: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    rmp::encode::write_array_len(&mut out, 2).unwrap();
    rmp::encode::write_f64(&mut out, seconds).unwrap();
    rmp::encode::write_array_len(&mut out, hashes.len() as u32).unwrap();
    for &hash in hashes {
        rmp::encode::write_array_len(&mut out, 3).unwrap();
        rmp::encode::write_str(&mut out, "BlockRemoved").unwrap();
        rmp::encode::write_array_len(&mut out, 1).unwrap();
        rmp::encode::write_uint(&mut out, hash).unwrap();
        rmp::encode::write_str(&mut out, "GPU").unwrap();
    }
    out
}
