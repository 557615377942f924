//! What the sender's thread does, from the first message to the close of its transport.

use super::payload::Payloads;
use super::shared::Shared;
use crate::lockfree::Waker;
use crate::sender::{Pace, Sender};
use crate::transport::Transport;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Sends until the publisher is stopped or the sender fails, then settles the account and closes the transport.
pub(super) fn send_until_stopped(
    shared: &Shared,
    payloads: Payloads,
    (transport, waker): (Box<dyn Transport>, Option<Waker>),
    pace: Pace,
    linger: Duration,
) {
    crate::os::use_batch_scheduling();
    let mut sender = Sender::new(&shared.pipe, &shared.tally, payloads, transport, pace);
    if let Some(waker) = waker {
        sender.sleep_in_transport(waker);
    }
    let cause = match catch_unwind(AssertUnwindSafe(|| sender.run())) {
        Ok(Ok(())) => None,
        Ok(Err(cause)) => Some(cause),
        Err(panic) => Some(format!("it panicked: {}", panic_text(&*panic))),
    };
    if let Some(cause) = cause {
        // Told last: the program's logger may panic or take its time.
        sender.settle_failure(cause.clone());
        crate::logging::failure!("kv-events: the sender died, nothing more is published: {cause}");
    }
    let mut transport = sender.into_transport();
    let linger = match shared.pipe.deadline() {
        // A little of what is left stays for closing itself.
        Some(deadline) => linger.min(deadline.saturating_duration_since(Instant::now()).mul_f64(0.9)),
        None => linger,
    };
    transport.close(linger);
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("for a reason it did not put in words")
}
