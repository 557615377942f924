//! Faults that the checks put in on purpose, to see that they are caught. Compiled only under `--cfg kv_events_faults`,
//! which no feature switches on; in any other build [`fault!`] is the constant `false`.

/// Whether the named fault is switched on: `false` at compile time in every build that ships.
macro_rules! fault {
    ($name:ident) => {{
        #[cfg(kv_events_faults)]
        let on = $crate::faults::is_on($crate::faults::Fault::$name);
        #[cfg(not(kv_events_faults))]
        let on = false;
        on
    }};
}
pub(crate) use fault;

/// The ordering given, or `Relaxed` if the named fault is switched on.
macro_rules! weaken {
    ($name:ident, $ordering:expr) => {
        if $crate::faults::fault!($name) { $crate::sync::Ordering::Relaxed } else { $ordering }
    };
}
pub(crate) use weaken;

#[cfg(kv_events_faults)]
pub use list::*;

#[cfg(kv_events_faults)]
mod list {
    use std::sync::OnceLock;

    macro_rules! faults {
        ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
            /// A fault that can be put in.
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum Fault { $($(#[$doc])* $variant,)* }

            impl Fault {
                /// Every fault.
                pub const ALL: &'static [Fault] = &[$(Fault::$variant,)*];

                /// The name by which the environment variable `KV_EVENTS_FAULT` selects it.
                pub const fn name(self) -> &'static str {
                    match self { $(Fault::$variant => $name,)* }
                }
            }
        };
    }

    faults! {
        /// A producer does not fence between its write and its look at the state.
        NoProducerFence = "no-producer-fence",
        /// The sender does not fence between saying that it parks and its last look at the queue.
        NoSenderFence = "no-sender-fence",
        /// The sender parks without a last look at the queue.
        ParkWithoutRecheck = "park-without-recheck",
        /// A producer wakes the sender whether it sleeps or not.
        WakesAlways = "wakes-always",
        /// The `Release` that hands stop's deadline over is `Relaxed`.
        WakeClose = "wake-close-relaxed",
        /// The `Release` that hands a frame over with its word is `Relaxed`.
        RingPublish = "ring-publish-relaxed",
        /// The `Acquire` that a frame comes with is `Relaxed`.
        RingRead = "ring-read-relaxed",
        /// A word of an older lap is taken for this one's.
        RingIgnoresLap = "ring-ignores-lap",
        /// A call of two events counts as one.
        RingIgnoresKind = "ring-ignores-kind",
        /// `head` is stored, not exchanged.
        RingMovesBlindly = "ring-moves-blindly",
        /// A word is written over a skip.
        RingPublishesBlindly = "ring-publishes-blindly",
        /// An evictor passes an unwritten position without marking it.
        RingLeavesOutSkip = "ring-leaves-out-skip",
        /// The second position of a skipped call is not skipped.
        RingSkipsNoSecond = "ring-skips-no-second",
        /// A call is queued without room.
        RingMakesNoRoom = "ring-makes-no-room",
        /// A call believes that there is room for one more than there is.
        RingOneTooMany = "ring-one-too-many",
        /// A batch goes on behind a loss.
        RingJoinsAcrossLoss = "ring-joins-across-loss",
        /// Closing notes the end first and refuses claims then.
        RingClosesInTwoSteps = "ring-closes-in-two-steps",
        /// What the ring is ended with is left in it.
        RingEndsWithoutWalk = "ring-ends-without-walk",
        /// The gap is told with the batch before.
        GapEarly = "gap-early",
        /// The gap is told with the batch after.
        GapLate = "gap-late",
        /// The gap is forgotten when the sender ends.
        GapForgottenAtEnd = "gap-forgotten-at-end",
        /// A call that was taken is kept for the next message.
        CarryOver = "carry-over",
        /// The sender ends while an accepted call is still being written.
        StopForgetsDrain = "stop-forgets-drain",
        /// A second stop does not refuse calls itself.
        SecondStopReturns = "second-stop-returns",
        /// A sweep looks for racing stores before it queues `cleared`, not together with it.
        SweepChecksEarly = "sweep-checks-early",
        /// A victim's frame does not go back to the pool.
        VictimNotReturned = "victim-not-returned",
        /// A frame goes back to the pool twice.
        FrameReturnedTwice = "frame-returned-twice",
        /// The `Release` of a stack of frames is `Relaxed`.
        StackPush = "stack-push-relaxed",
        /// The `Acquire` of a stack of frames is `Relaxed`.
        StackPop = "stack-pop-relaxed",
        /// A stack's top does not count its changes.
        StackWithoutCount = "stack-without-count",
        /// A heartbeat that failed counts as one that was sent.
        HeartbeatTellsNothing = "heartbeat-tells-nothing",
    }

    /// The fault named by `KV_EVENTS_FAULT`, read once.
    ///
    /// # Panics
    ///
    /// If the variable names no fault: a check that asks for one that does not exist would check nothing.
    pub fn active() -> Option<Fault> {
        static ACTIVE: OnceLock<Option<Fault>> = OnceLock::new();
        *ACTIVE.get_or_init(|| {
            let name = std::env::var("KV_EVENTS_FAULT").ok().filter(|name| !name.is_empty())?;
            let fault = Fault::ALL.iter().copied().find(|fault| fault.name() == name);
            Some(fault.unwrap_or_else(|| panic!("KV_EVENTS_FAULT={name} names no fault")))
        })
    }

    /// Whether `fault` is switched on.
    pub fn is_on(fault: Fault) -> bool {
        active() == Some(fault)
    }
}
