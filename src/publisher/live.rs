//! A publisher that publishes: the pipe, its encoder, and the sender's thread.

use super::payload::Payloads;
use super::shared::{ClosedOnDrop, Shared};
use super::thread::send_until_stopped;
use crate::config::{CALLERS, Config};
use crate::error::{ConfigError, StartError};
use crate::lockfree::{Closed, Held, Limits, Pipe, SweepEnd, SweepTable, SweepToken};
use crate::media::MediaSet;
use crate::memory::copied;
use crate::names::{CopyNames, Known, Names};
use crate::object::Object;
use crate::outcome::{Outcome, Refusal};
use crate::sender::Pace;
use crate::status::{Status, StopReport};
use crate::sync::{Counter, Latest};
use crate::transport::{Opened, Report, Transport};
use crate::wire::encode::{CallLayout, Context, Encoder};
use crate::wire::message::PayloadWriter;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long dropping the last handle of a publisher that was not stopped may take.
pub const DROP_DEADLINE: Duration = Duration::from_secs(1);

/// A started publisher.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) shared: Arc<Shared>,
    encoder: Arc<Encoder>,
    sweeps: SweepTable,
    emit_object_key: bool,
    max_event_bytes: usize,
    skipped: Counter,
    pub(super) refused: Counter,
    opened: Opened,
    /// Evicted events as last told: read while a batch is being taken they could seem fewer.
    evicted: Latest,
    thread: Mutex<Option<JoinHandle<()>>>,
    process: u32,
}

impl Live {
    /// Starts the sender's thread, which opens the transport.
    pub(super) fn start(config: &Config, mut transport: Box<dyn Transport>) -> Result<Live, StartError> {
        let limits = Limits { events: config.max_batch_events as u64, bytes: config.max_batch_bytes };
        let pipe = Pipe::new(config.queue_capacity, config.eviction_burst, limits, CALLERS, config.retain_bytes)
            .ok_or(StartError::QueueMemory { queue_capacity: config.queue_capacity })?;
        let shared = Arc::new(Shared::new(pipe));
        let pace = Pace { wait: config.wait_strategy, heartbeat: config.heartbeat_interval };
        let encoder = Arc::new(Encoder::new(&Context {
            model_name: &config.model_name,
            block_size: config.block_size,
            additional_salt: &config.additional_salt,
            lora_name: &config.lora_name,
            backend_id: &config.backend_id,
            dp_rank: config.dp_rank,
            legacy: config.emit_legacy_compat,
        }));
        let shortest =
            encoder.names_call(Names::of(&Object::new("t", "k")), MediaSet::EMPTY, MediaSet::DISK).largest_event();
        if shortest > config.max_event_bytes {
            return Err(ConfigError::NamesTooLong { bytes: shortest, max_event_bytes: config.max_event_bytes }.into());
        }
        let payloads = Payloads::new(PayloadWriter::new(Arc::clone(&encoder), config.dp_rank));
        let linger = config.linger;
        let (tell, told) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("kv-events".into())
            .spawn({
                let shared = Arc::clone(&shared);
                move || {
                    let _closed = ClosedOnDrop(&shared);
                    let mut opened = transport.open();
                    let is_open = opened.is_ok();
                    let waker = opened.as_mut().ok().and_then(|opened| opened.waker.take());
                    if !is_open {
                        // What it holds is free by the time that its error is told.
                        drop(transport);
                        let _ = tell.send(opened);
                    } else if tell.send(opened).is_ok() {
                        send_until_stopped(&shared, payloads, (transport, waker), pace, linger);
                    }
                }
            })
            .map_err(StartError::Thread)?;
        let opened = told
            .recv()
            .unwrap_or_else(|_| Err(StartError::Thread(std::io::Error::other("it ended before the socket was open"))));
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => {
                // Nothing is left behind: the thread has let go of whatever it had opened.
                let _ = thread.join();
                return Err(error);
            }
        };
        #[cfg(unix)]
        super::fork::watch(&shared);
        Ok(Live {
            shared,
            encoder,
            sweeps: SweepTable::new(),
            emit_object_key: config.emit_object_key,
            max_event_bytes: config.max_event_bytes,
            skipped: Counter::new(),
            refused: Counter::new(),
            opened,
            evicted: Latest::new(),
            thread: Mutex::new(Some(thread)),
            process: std::process::id(),
        })
    }

    #[inline]
    pub(super) fn object_call(&self, object: &Object<'_>, removed: MediaSet, stored: MediaSet) -> Outcome {
        if !object.session.is_empty() {
            return self.session_call(object, removed, stored);
        }
        self.names_call(Names { session: &[], ..Names::of(object) }, removed, stored, Known)
    }

    /// Apart, so that an object without a session pays for one comparison.
    #[cold]
    #[inline(never)]
    fn session_call(&self, object: &Object<'_>, removed: MediaSet, stored: MediaSet) -> Outcome {
        self.names_call(Names::of(object), removed, stored, Known)
    }

    /// The same for names that are copied, and perhaps looked through, by `copy`.
    #[inline(always)]
    pub(super) fn names_call(
        &self,
        names: Names<'_>,
        removed: MediaSet,
        stored: MediaSet,
        mut copy: impl CopyNames,
    ) -> Outcome {
        // Counted where it is asked for: a caller that does not ask does not pay.
        let events = || (removed.len() + stored.len()) as u8;
        if removed.is_empty() && stored.is_empty() {
            return Outcome::Nothing;
        }
        if !self.emit_object_key || names.key.is_empty() {
            self.skipped.add(events().into());
            return Outcome::Suppressed { events: events() };
        }
        let call = self.encoder.names_call(names, removed, stored);
        if let Err(refusal) = self.check(&call) {
            return self.refuse(refusal, events());
        }
        let pipe = &self.shared.pipe;
        let Some(mut held) = pipe.take_frame(call.room()) else {
            return self.refuse(Refusal::OutOfMemory, events());
        };
        if !call.write_by(pipe.frame(&mut held), &mut copy) {
            pipe.give_back(held);
            return self.refuse(Refusal::OutOfMemory, events());
        }
        if !copy.are_text(call.names()) {
            pipe.give_back(held);
            return self.refuse(Refusal::NotUtf8, events());
        }
        let queued = if stored.is_empty() || self.sweeps.is_idle() {
            pipe.push(held)
        } else {
            self.store_during_sweeps(call.names().tenant, held)
        };
        match queued {
            Ok(()) => Outcome::Accepted { events: events() },
            Err(closed) => self.refuse(closed.into(), events()),
        }
    }

    /// Apart, so that the way without sweeps has the one `push` to itself and is compiled in one piece.
    #[cold]
    fn store_during_sweeps(&self, tenant: &[u8], held: Held) -> Result<(), Closed> {
        self.sweeps.store(tenant, || self.shared.pipe.push(held))
    }

    pub(super) fn cleared(&self, tenant: &str) -> Outcome {
        let call = self.encoder.cleared_call(tenant);
        if let Err(refusal) = self.check(&call) {
            return self.refuse(refusal, 1);
        }
        let pipe = &self.shared.pipe;
        let Some(mut held) = pipe.take_frame(call.room()) else { return self.refuse(Refusal::OutOfMemory, 1) };
        if !call.write(pipe.frame(&mut held)) {
            pipe.give_back(held);
            return self.refuse(Refusal::OutOfMemory, 1);
        }
        match pipe.push(held) {
            Ok(()) => Outcome::Accepted { events: 1 },
            Err(closed) => self.refuse(closed.into(), 1),
        }
    }

    /// Registers a sweep; `Err` if there is no memory for it, no token in a forked child, where the table may be locked for
    /// ever.
    pub(super) fn begin_sweep(&self, tenant: &str) -> Result<Option<SweepToken>, ()> {
        match self.is_own() {
            true => self.sweeps.begin(tenant).map(Some).ok_or(()),
            false => Ok(None),
        }
    }

    pub(super) fn cancel_sweep(&self, token: SweepToken) {
        if self.is_own() {
            self.sweeps.cancel(token);
        }
    }

    /// Queues `cleared` unless a `stored` interrupted the sweep.
    pub(super) fn end_sweep(&self, token: Option<SweepToken>, tenant: &str) -> Option<Outcome> {
        let Some(token) = token.filter(|_| self.is_own()) else { return Some(self.cleared(tenant)) };
        match self.sweeps.end(token, || self.cleared(tenant)) {
            SweepEnd::Uninterrupted(outcome) => Some(outcome),
            SweepEnd::Interrupted => None,
        }
    }

    #[inline(always)]
    fn check(&self, call: &CallLayout<'_>) -> Result<(), Refusal> {
        self.shared.pipe.check_open()?;
        let (bytes, max_event_bytes) = (call.largest_event(), self.max_event_bytes);
        if bytes > max_event_bytes { Err(Refusal::TooLarge { bytes, max_event_bytes }) } else { Ok(()) }
    }

    #[cold]
    fn refuse(&self, refusal: Refusal, events: u8) -> Outcome {
        self.refused.add(events.into());
        Outcome::Refused(refusal)
    }

    pub(super) fn endpoint(&self) -> &str {
        &self.opened.endpoint
    }

    pub(super) fn status(&self) -> Status {
        let Shared { pipe, tally, .. } = &*self.shared;
        let ring = pipe.ring();
        let evicted = self.evicted.or_later(ring.evicted());
        let (failed, abandoned) = (tally.failed.get(), ring.abandoned());
        // Without memory there are figures all the same.
        let reason = tally.failure_reason.get();
        // In a forked child its locks may be held for ever.
        let report = self.opened.report.as_ref().filter(|_| self.is_own());
        let report = report.map_or_else(Report::default, |report| report());
        let Report { refused_peers, endpoint_faults, endpoint_fault, .. } = report;
        Status {
            enabled: true,
            stopped: pipe.is_closing(),
            healthy: reason.is_none(),
            unhealthy_reason: reason.map(|reason| copied(reason).unwrap_or_default()),
            bound_endpoint: Some(copied(&self.opened.endpoint).unwrap_or_default()),
            keys_suppressed: !self.emit_object_key,
            published_batches: tally.messages.get(),
            published_events: tally.events.get(),
            published_bytes: tally.bytes.get(),
            dropped_events: evicted + failed + abandoned,
            evicted_events: evicted,
            failed_events: failed,
            abandoned_events: abandoned,
            skipped_keyless_events: self.skipped.get(),
            refused_events: self.refused.get(),
            last_sequence: tally.sequence.get(),
            queue_length: tally.queue_length.get(),
            // Seen with the batch in the sender's hands, for which others may have come meanwhile.
            queue_high_water: tally.queue_high_water.get().min(ring.capacity()),
            queue_capacity: ring.capacity(),
            send_hwm: self.opened.send_hwm,
            pool_idle: pipe.pool().idle(),
            pool_misses: pipe.pool().made(),
            pool_freed: pipe.pool().freed(),
            refused_peers,
            endpoint_faults,
            endpoint_fault,
            refused_connections: report.refused_connections,
            peer_dropped_messages: report.peer_dropped_messages,
            peer_dropped_events: report.peer_dropped_events,
            peers: report.peers,
        }
    }

    pub(super) fn stop(&self, deadline: Duration) -> StopReport {
        let until = Instant::now().checked_add(deadline);
        // A forked child has no sender thread to wait for, and the parent's is none of its business.
        let closed = self.is_own() && {
            self.shared.pipe.close(until);
            let closed = !self.is_sender() && self.shared.wait_closed(until);
            if !closed {
                // Out of time: whatever is queued now will not be sent, so that what the report says is final.
                self.shared.pipe.abandon();
            }
            closed
        };
        if closed {
            let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(thread) = thread {
                let _ = thread.join();
            }
        }
        StopReport { published: self.shared.tally.events.get(), abandoned: self.shared.pipe.ring().abandoned(), closed }
    }

    /// Stops unless that has begun before; in a forked child it does nothing, for all of it is the parent's.
    pub(super) fn retire(&self, deadline: Duration) {
        if self.is_own() && !self.shared.pipe.is_closing() {
            let _ = self.stop(deadline);
        }
    }

    /// Whether the sender's own thread asks, by way of a logger or a transport: it would wait for itself.
    fn is_sender(&self) -> bool {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.as_ref().is_some_and(|thread| thread.thread().id() == std::thread::current().id())
    }

    /// Whether this is the process that started the publisher.
    fn is_own(&self) -> bool {
        !self.shared.pipe.is_disowned() && self.process == std::process::id()
    }
}

/// What the handles of a publisher share. The last one that is dropped stops it and frees it.
#[derive(Debug)]
pub(super) struct StopOnDrop(ManuallyDrop<Live>);

impl StopOnDrop {
    pub(super) fn new(live: Live) -> Self {
        StopOnDrop(ManuallyDrop::new(live))
    }
}

impl Deref for StopOnDrop {
    type Target = Live;

    #[inline(always)]
    fn deref(&self) -> &Live {
        &self.0
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.retire(DROP_DEADLINE);
        // Not in a forked child: other threads of the parent may have been using it.
        if self.0.is_own() {
            // SAFETY: dropped here only, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

impl From<Closed> for Refusal {
    fn from(closed: Closed) -> Self {
        match closed {
            Closed::Stopped => Refusal::Stopped,
            Closed::SenderFailed => Refusal::SenderDead,
            Closed::Forked => Refusal::Forked,
        }
    }
}
