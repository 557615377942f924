//! Faults that the checks put in on purpose, to see that they are caught. Compiled only with the private feature
//! `__faults` (which the feature `loom` implies); in any other build [`fault!`] is the constant `false`.

/// Whether the named fault is switched on: `false` at compile time in every build that ships.
macro_rules! fault {
    ($name:ident) => {{
        #[cfg(feature = "__faults")]
        let on = $crate::faults::is_on($crate::faults::Fault::$name);
        #[cfg(not(feature = "__faults"))]
        let on = false;
        on
    }};
}
pub(crate) use fault;

#[cfg(feature = "__faults")]
pub use list::*;

#[cfg(feature = "__faults")]
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
        /// A victim's gap is counted outside the lock, after the eviction.
        GapAfterEviction = "gap-after-eviction",
        /// A victim's gap is counted outside the lock, before the eviction.
        GapBeforeEviction = "gap-before-eviction",
        /// The sender pops outside the lock.
        PopOutsideLock = "pop-outside-lock",
        /// A call that was popped is kept for the next message.
        CarryOver = "carry-over",
        /// A producer does not fence between its push and its look at the state.
        NoProducerFence = "no-producer-fence",
        /// The sender does not fence between saying that it parks and its last look at the queue.
        NoSenderFence = "no-sender-fence",
        /// The sender parks without a last look at the queue.
        ParkWithoutRecheck = "park-without-recheck",
        /// The sender does not drain the queue once more after it said that it ended.
        StopForgetsDrain = "stop-forgets-drain",
        /// A producer does not look at the end flag after its push.
        ProducerIgnoresEnd = "producer-ignores-end",
        /// A sweep looks for racing stores before it queues `cleared`, not together with it.
        SweepChecksEarly = "sweep-checks-early",
        /// A victim's buffer does not go back to the pool.
        VictimNotReturned = "victim-not-returned",
        /// A buffer goes back to the pool twice.
        BufferReturnedTwice = "buffer-returned-twice",
        /// A `Release` of the ported ring is `Relaxed`.
        RingReleaseRelaxed = "ring-release-relaxed",
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
