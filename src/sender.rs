//! The sender: takes batches from the pipe, numbers them, hands them to a transport, and keeps account of what became of them.
//!
//! A message that was sent takes one number; every lost event takes one more. So a message that follows `gap` lost events
//! is numbered `last + 1 + gap`, and a failed message of k events takes k numbers.

use crate::config::WaitStrategy;
use crate::faults::fault;
use crate::lockfree::{Batch, Call, Consumer, Held, Pipe, Waker};
use crate::log_throttle::is_power_of_ten;
use crate::sync::{Gauge, OnceLock, pause};
use crate::transport::{Message, SendError, Transport};
use std::time::{Duration, Instant};

/// How long an empty batch that failed is left alone.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Writes the payloads of batches; an empty batch has one too.
pub trait Assemble<T> {
    /// What is found out about a batch before it is written.
    type Head;

    /// Looks at a batch.
    fn head(&self, batch: Batch<'_, T>) -> Self::Head;

    /// Length of its payload, bytes.
    fn len(&self, head: &Self::Head) -> usize;

    /// Writes the payload over `place`, which is that long, the same however often it is asked.
    fn write(&self, head: &Self::Head, batch: Batch<'_, T>, place: &mut [u8]);

    /// The payload was sent.
    fn sent(&mut self, head: &Self::Head);
}

/// The sender's account, written by it alone and read by anyone.
#[derive(Debug)]
pub struct Tally {
    /// Messages sent.
    pub messages: Gauge,
    /// Events in them.
    pub events: Gauge,
    /// Bytes of payload in them.
    pub bytes: Gauge,
    /// Events in messages that failed.
    pub failed: Gauge,
    /// The last number used up.
    pub sequence: Gauge,
    /// Events in the queue when last looked.
    pub queue_length: Gauge,
    /// The most events seen in the queue.
    pub queue_high_water: Gauge,
    /// Why the sender failed.
    pub failure_reason: OnceLock<String>,
}

impl Tally {
    /// Nothing sent yet.
    pub fn new() -> Self {
        Tally {
            messages: Gauge::new(),
            events: Gauge::new(),
            bytes: Gauge::new(),
            failed: Gauge::new(),
            sequence: Gauge::new(),
            queue_length: Gauge::new(),
            queue_high_water: Gauge::new(),
            failure_reason: OnceLock::new(),
        }
    }
}

impl Default for Tally {
    fn default() -> Self {
        Tally::new()
    }
}

/// What the sender has to know of the settings.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// What to do when there is nothing to send.
    pub wait: WaitStrategy,
    /// An empty batch is sent when nothing was for so long; zero for never.
    pub heartbeat: Duration,
}

/// The sending end of a pipe.
#[derive(Debug)]
pub struct Sender<'a, T, A, X> {
    pipe: &'a Pipe<T>,
    tally: &'a Tally,
    payloads: A,
    transport: X,
    pace: Pace,
    consumer: Consumer,
    batch: Vec<Held>,
    /// Events in `batch` that no counter has yet.
    unsettled: u64,
    /// The last number used up.
    last: u64,
    /// The last thing that happened was a loss, and no message has told of it.
    gap_pending: bool,
    /// Messages that the socket did not take.
    failures: u64,
    retry_at: Option<Instant>,
    next_heartbeat: Option<Instant>,
    next_upkeep: Option<Instant>,
    napped: bool,
    /// Reaches it where it sleeps, if that is in its transport.
    waker: Option<Waker>,
}

impl<'a, T: Call, A: Assemble<T>, X: Transport> Sender<'a, T, A, X> {
    /// A sender that has sent nothing, on a transport that is open.
    pub fn new(pipe: &'a Pipe<T>, tally: &'a Tally, payloads: A, transport: X, pace: Pace) -> Self {
        let mut sender = Sender {
            pipe,
            tally,
            payloads,
            transport,
            pace,
            consumer: pipe.consumer(),
            batch: Vec::with_capacity(pipe.limits().events as usize),
            unsettled: 0,
            last: 0,
            gap_pending: false,
            failures: 0,
            retry_at: None,
            next_heartbeat: None,
            next_upkeep: None,
            napped: false,
            waker: None,
        };
        sender.schedule_heartbeat();
        sender
    }

    /// Has it sleep in the transport's [`wait`](Transport::wait), which `waker` ends. To be called before it runs.
    pub fn sleep_in_transport(&mut self, waker: Waker) {
        self.waker = Some(waker);
    }

    /// Sends until stop has begun and all is drained, or its deadline has passed; what is left then is counted as abandoned.
    /// To be called once, on the sender's thread.
    ///
    /// # Errors
    ///
    /// Why it cannot go on. [`settle_failure`](Self::settle_failure) has to be called then, and after a panic.
    pub fn run(&mut self) -> Result<(), String> {
        self.pipe.register_sender(self.waker.clone());
        self.upkeep();
        while !self.is_overdue() {
            if self.next_upkeep.is_some_and(|at| at <= Instant::now()) {
                self.upkeep();
            }
            if self.send_batch()? {
                self.napped = false;
            } else if self.gap_pending && self.retry_at.is_none_or(|at| at <= Instant::now()) {
                self.send_empty()?;
            } else if self.pipe.is_closing() {
                if self.pipe.is_drained() || fault!(StopForgetsDrain) {
                    break;
                }
                // An accepted call whose caller was held up before it wrote the word. Its caller need not wake anyone.
                pause();
            } else if !self.gap_pending && self.next_heartbeat.is_some_and(|at| at <= Instant::now()) {
                self.send_empty()?;
            } else {
                self.wait();
            }
        }
        let gap = self.pipe.end(&mut self.consumer);
        if !fault!(GapForgottenAtEnd) {
            self.lose(gap);
        }
        if self.gap_pending && !self.is_overdue() {
            self.send_empty()?;
        }
        Ok(())
    }

    /// Settles what is left after a failure: the batch in hand has failed, the queue is abandoned, calls are refused.
    pub fn settle_failure(&mut self, reason: String) {
        let unsettled = self.unsettled;
        self.fail(self.last + 1, unsettled);
        self.pipe.recycle(&mut self.consumer, &mut self.batch);
        // Before calls are refused, so that whoever is refused finds the reason.
        let _ = self.tally.failure_reason.set(reason);
        let gap = self.pipe.fail(&mut self.consumer);
        self.lose(gap);
    }

    /// The transport, to be closed.
    pub fn into_transport(self) -> X {
        self.transport
    }

    /// Takes what is there and sends it; `false` if there was nothing.
    fn send_batch(&mut self) -> Result<bool, String> {
        let gap = self.pipe.take(&mut self.consumer, &mut self.batch);
        self.sample_queue();
        if self.batch.is_empty() {
            return Ok(false);
        }
        let batch = self.pipe.batch(&self.batch);
        let events = batch.calls().map(Call::events).sum();
        let sequence = self.last + 1 + gap;
        // The gap is ours from here on, whatever happens next.
        self.last += gap;
        self.unsettled = events;
        let waiting = self.tally.queue_length.get();
        let outcome = transmit(&mut self.payloads, &mut self.transport, (sequence, events, waiting), batch);
        match &outcome {
            Ok(bytes) => self.sent(sequence, events, *bytes),
            Err(_) => self.fail(sequence, events),
        }
        self.pipe.recycle(&mut self.consumer, &mut self.batch);
        match outcome {
            Ok(_) => Ok(true),
            Err(SendError::Failed(cause)) => {
                self.say_failed(&cause);
                Ok(true)
            }
            Err(SendError::Broken(cause)) => Err(cause),
        }
    }

    /// Sends a message without events: it tells of what was lost last, or that the publisher is alive. One that fails
    /// takes no number and leaves all as it was.
    fn send_empty(&mut self) -> Result<(), String> {
        match transmit(&mut self.payloads, &mut self.transport, (self.last + 1, 0, 0), self.pipe.batch(&[])) {
            Ok(bytes) => self.sent(self.last + 1, 0, bytes),
            Err(SendError::Failed(cause)) => {
                self.say_failed(&cause);
                self.gap_pending &= !fault!(HeartbeatTellsNothing);
                self.retry_at = Some(Instant::now() + RETRY_AFTER);
                self.schedule_heartbeat();
            }
            Err(SendError::Broken(cause)) => return Err(cause),
        }
        Ok(())
    }

    fn sent(&mut self, sequence: u64, events: u64, bytes: usize) {
        self.unsettled = 0;
        self.last = sequence;
        self.gap_pending = false;
        self.retry_at = None;
        self.tally.sequence.set(sequence);
        self.tally.messages.add(1);
        self.tally.bytes.add(bytes as u64);
        self.tally.events.add(events);
        self.schedule_heartbeat();
    }

    fn fail(&mut self, sequence: u64, events: u64) {
        if events == 0 {
            return;
        }
        self.unsettled = 0;
        self.last = sequence + events - 1;
        self.gap_pending = true;
        self.tally.sequence.set(self.last);
        self.tally.failed.add(events);
    }

    /// Logs the 1st, the 10th, the 100th ... failure: what it was is in no figure.
    fn say_failed(&mut self, cause: &str) {
        self.failures += 1;
        if is_power_of_ten(self.failures) {
            crate::logging::warning!(
                "kv-events: the socket did not take a message ({cause}), {} so far",
                self.failures
            );
        }
    }

    /// Events were evicted behind the last batch there will be.
    fn lose(&mut self, gap: u64) {
        if gap > 0 {
            self.last += gap;
            self.gap_pending = true;
            self.tally.sequence.set(self.last);
        }
    }

    fn wait(&mut self) {
        let next_empty = if self.gap_pending { self.retry_at } else { self.next_heartbeat };
        let timeout = [next_empty, self.next_upkeep]
            .into_iter()
            .flatten()
            .min()
            .map(|at| at.saturating_duration_since(Instant::now()));
        let at_most = |pause: Duration| timeout.map_or(pause, |timeout| timeout.min(pause));
        match self.pace.wait {
            WaitStrategy::Nap(nap) if !self.napped => {
                self.napped = true;
                self.rest(at_most(nap));
            }
            WaitStrategy::Nap(_) | WaitStrategy::Park => {
                self.napped = false;
                match &self.waker {
                    None => self.pipe.park(timeout),
                    Some(_) => self.pipe.park_elsewhere(|| self.transport.wait(timeout)),
                }
            }
            WaitStrategy::Poll(interval) => self.rest(at_most(interval)),
            WaitStrategy::Spin => {
                if self.waker.is_some() {
                    self.transport.wait(Some(Duration::ZERO));
                }
                (0..64).for_each(|_| std::hint::spin_loop());
            }
        }
    }

    /// Sleeps for so long, where no call ends it.
    fn rest(&mut self, time: Duration) {
        match &self.waker {
            None => std::thread::sleep(time),
            Some(_) => self.transport.wait(Some(time)),
        }
    }

    fn sample_queue(&self) {
        let length = self.pipe.ring().len();
        self.tally.queue_length.set(length);
        let before = length + self.batch.len() as u64;
        if before > self.tally.queue_high_water.get() {
            self.tally.queue_high_water.set(before);
        }
    }

    fn schedule_heartbeat(&mut self) {
        if !self.pace.heartbeat.is_zero() {
            self.next_heartbeat = Instant::now().checked_add(self.pace.heartbeat);
        }
    }

    fn upkeep(&mut self) {
        self.next_upkeep = self.transport.upkeep().and_then(|interval| Instant::now().checked_add(interval));
    }

    /// Whether stop's deadline has passed.
    fn is_overdue(&self) -> bool {
        self.pipe.is_closing() && self.pipe.deadline().is_some_and(|deadline| deadline <= Instant::now())
    }
}

/// Sends a batch as one message of this number, with so many events, before so many more. Returns the bytes of its payload.
fn transmit<T: Call, A: Assemble<T>>(
    payloads: &mut A,
    transport: &mut impl Transport,
    (sequence, events, waiting): (u64, u64, u64),
    batch: Batch<'_, T>,
) -> Result<usize, SendError> {
    let head = payloads.head(batch);
    let len = payloads.len(&head);
    let fill = |place: &mut [u8]| payloads.write(&head, batch, place);
    transport.send(&Message::new(sequence, events, len, &fill).before(waiting))?;
    payloads.sent(&head);
    Ok(len)
}
