//! The usual design, as honestly as it fits into one file: a mutex around a deque of owned events, a condition variable,
//! and a worker that encodes with `rmp-serde` and sends.
//!
//! It does what such publishers do, and no more than they do: a call makes a list of its one or two events before it takes
//! the lock, a full queue drops its oldest event under the lock and leaves a gap in the sequence, and every call notifies.
//! The worker takes its batch under one hold of the lock and encodes outside it, into a buffer that it keeps.
//!
//! What a notification costs depends on the condition variable: Rust's makes a system call each time, the C library's none
//! while nobody waits. So there is a second peer, [`Settings::frugal`], which looks first whether the worker waits, and
//! which makes no list for a single event; it is shown beside the first.

use super::{LINGER, SEND_HWM};
use kv_events::Object;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

/// Events in one message.
const BATCH: usize = 64;

/// What is the same in every event.
#[derive(Clone)]
pub struct Settings {
    pub capacity: usize,
    /// Notifies only a worker that waits, and makes no list for one event.
    pub frugal: bool,
    pub model_name: String,
    pub block_size: u32,
    pub additional_salt: String,
    pub backend_id: String,
    pub dp_rank: u32,
}

impl Settings {
    /// The figures of [`super::config`].
    pub fn new(capacity: usize) -> Self {
        Settings {
            capacity,
            frugal: false,
            model_name: "meta-llama/Llama-3.1-70B-Instruct".into(),
            block_size: 16,
            additional_salt: "salt-1".into(),
            backend_id: "master-0".into(),
            dp_rank: 0,
        }
    }
}

/// Where the worker's messages go.
pub trait PeerSink: Send {
    fn send(&mut self, sequence: u64, payload: &[u8]);
}

pub struct Peer {
    shared: Arc<Shared>,
    pub endpoint: String,
    worker: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    state: Mutex<State>,
    filled: Condvar,
    capacity: usize,
    frugal: bool,
    published: AtomicU64,
}

struct State {
    queue: VecDeque<Event>,
    gap: u64,
    evicted: u64,
    waiting: bool,
    stopping: bool,
}

struct Event {
    tenant: String,
    group: String,
    key: String,
}

impl Peer {
    /// A peer on a PUB socket with the options of the crate's own.
    pub fn start(settings: Settings) -> Peer {
        let socket = zmq::Context::new().socket(zmq::PUB).expect("a PUB socket");
        socket.set_sndhwm(SEND_HWM as i32).expect("SNDHWM");
        socket.set_linger(LINGER.as_millis() as i32).expect("LINGER");
        socket.bind(super::ENDPOINT).expect("a free port");
        let endpoint = socket.get_last_endpoint().expect("an endpoint").expect("text");
        Peer::start_with(settings, endpoint, Socket(socket))
    }

    pub fn start_with(settings: Settings, endpoint: String, sink: impl PeerSink + 'static) -> Peer {
        let shared = Arc::new(Shared {
            state: Mutex::new(State { queue: VecDeque::new(), gap: 0, evicted: 0, waiting: false, stopping: false }),
            filled: Condvar::new(),
            capacity: settings.capacity,
            frugal: settings.frugal,
            published: AtomicU64::new(0),
        });
        let worker = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || work(&shared, &settings, sink)
        });
        Peer { shared, endpoint, worker: Mutex::new(Some(worker)) }
    }

    pub fn stored(&self, object: &Object<'_>) {
        let event =
            Event { tenant: object.tenant.to_owned(), group: object.group.to_owned(), key: object.key.to_owned() };
        if self.shared.frugal { self.enqueue([event]) } else { self.enqueue(vec![event]) }
    }

    fn enqueue(&self, events: impl IntoIterator<Item = Event>) {
        let mut state = self.shared.state.lock().expect("the peer's lock");
        for event in events {
            if state.queue.len() == self.shared.capacity {
                state.queue.pop_front();
                state.gap += 1;
                state.evicted += 1;
            }
            state.queue.push_back(event);
        }
        let notify = state.waiting || !self.shared.frugal;
        drop(state);
        if notify {
            self.shared.filled.notify_one();
        }
    }

    pub fn evicted(&self) -> u64 {
        self.shared.state.lock().expect("the peer's lock").evicted
    }

    pub fn settled(&self) -> u64 {
        self.evicted() + self.shared.published.load(Ordering::Acquire)
    }

    pub fn stop(&self) {
        self.shared.state.lock().expect("the peer's lock").stopping = true;
        self.shared.filled.notify_one();
        if let Some(worker) = self.worker.lock().expect("the worker").take() {
            worker.join().expect("the peer's worker");
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn work(shared: &Shared, settings: &Settings, mut sink: impl PeerSink) {
    let (mut sequence, mut event_id) = (0, 0);
    let mut batch = Vec::with_capacity(BATCH);
    let mut payload = Vec::new();
    loop {
        let mut state = shared.state.lock().expect("the peer's lock");
        while state.queue.is_empty() {
            if state.stopping {
                return;
            }
            state.waiting = true;
            state = shared.filled.wait(state).expect("the peer's lock");
            state.waiting = false;
        }
        let count = state.queue.len().min(BATCH);
        batch.extend(state.queue.drain(..count));
        sequence += 1 + std::mem::take(&mut state.gap);
        drop(state);

        encode(settings, &batch, &mut event_id, &mut payload);
        sink.send(sequence, &payload);
        shared.published.fetch_add(batch.len() as u64, Ordering::Release);
        batch.clear();
    }
}

/// A `stored` event with every field the crate's has.
#[derive(Serialize)]
pub struct Stored<'a> {
    pub event_id: u64,
    pub timestamp: u64,
    pub event_type: &'a str,
    pub r#type: &'a str,
    pub model_name: &'a str,
    pub block_size: u32,
    pub additional_salt: &'a str,
    pub lora_name: Option<&'a str>,
    pub tenant_id: &'a str,
    pub backend_id: &'a str,
    pub medium: &'a str,
    pub dp_rank: u32,
    pub group_id: &'a str,
    pub object_key: &'a str,
    pub seq_hashes: &'a [u64],
    pub block_hashes: &'a [u64],
    pub base_block_idx: Option<u32>,
    pub parent_hash: Option<u64>,
    pub token_ids: Option<&'a [u32]>,
    pub parent_block_hash: Option<u64>,
}

impl<'a> Stored<'a> {
    pub fn new(settings: &'a Settings, object: Object<'a>, event_id: u64, timestamp: u64) -> Self {
        Stored {
            event_id,
            timestamp,
            event_type: "stored",
            r#type: "BlockStored",
            model_name: &settings.model_name,
            block_size: settings.block_size,
            additional_salt: &settings.additional_salt,
            lora_name: None,
            tenant_id: object.tenant,
            backend_id: &settings.backend_id,
            medium: "cpu",
            dp_rank: settings.dp_rank,
            group_id: object.group,
            object_key: object.key,
            seq_hashes: &[],
            block_hashes: &[],
            base_block_idx: None,
            parent_hash: None,
            token_ids: None,
            parent_block_hash: None,
        }
    }

    /// Appends the event as a map.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut serializer = rmp_serde::Serializer::new(out).with_struct_map();
        self.serialize(&mut serializer).expect("an event that can be encoded");
    }
}

fn encode(settings: &Settings, batch: &[Event], event_id: &mut u64, payload: &mut Vec<u8>) {
    let timestamp = now_ms();
    let events: Vec<_> = batch
        .iter()
        .map(|event| {
            *event_id += 1;
            let object = Object::new(&event.tenant, &event.key).in_group(&event.group);
            Stored::new(settings, object, *event_id, timestamp)
        })
        .collect();
    payload.clear();
    let mut serializer = rmp_serde::Serializer::new(payload).with_struct_map();
    (timestamp, events, settings.dp_rank).serialize(&mut serializer).expect("a batch that can be encoded");
}

pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

struct Socket(zmq::Socket);

impl PeerSink for Socket {
    fn send(&mut self, sequence: u64, payload: &[u8]) {
        let frames = [&[][..], &sequence.to_be_bytes(), payload];
        self.0.send_multipart(frames, zmq::DONTWAIT).expect("a PUB socket that never blocks");
    }
}
