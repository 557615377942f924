//! Which events a call has, by the media that changed.

use crate::media::MediaSet;

/// The templates of a call's events, by number, in the order in which the events go: `removed` before `stored`, `cpu`
/// before `disk`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) first: u8,
    /// [`NONE`] if there is one event.
    pub(crate) second: u8,
}

/// Where the first `stored` template is; before it are `removed` on `cpu` and `disk`.
const STORED: u8 = 2;
/// Where the `cleared` template is, behind `stored` on `cpu` and `disk`.
const CLEARED: u8 = 4;
/// Where the first template of `stored` in a session is, those of `cpu` and `disk` being last.
pub(crate) const STORED_IN_SESSION: u8 = 5;
/// No template.
pub(crate) const NONE: u8 = u8::MAX;

/// By the media removed from (the low two bits) and stored on.
const PLANS: [Plan; 16] = {
    let mut plans = [Plan::NOTHING; 16];
    let mut media = 0;
    while media < 16 {
        let mut template = 0;
        while template < 4 {
            if media & (1 << template) != 0 {
                if plans[media].first == NONE {
                    plans[media].first = template;
                } else if plans[media].second == NONE {
                    plans[media].second = template;
                }
            }
            template += 1;
        }
        media += 1;
    }
    plans
};

impl Plan {
    /// No event.
    pub(crate) const NOTHING: Plan = Plan { first: NONE, second: NONE };
    /// One `cleared`.
    pub(crate) const CLEARED: Plan = Plan { first: CLEARED, second: NONE };

    /// How many events, of one or two.
    pub(crate) const fn events(self) -> u8 {
        if self.second == NONE { 1 } else { 2 }
    }

    /// `removed` from some media, then `stored` on others.
    #[inline(always)]
    pub(crate) const fn of(removed: MediaSet, stored: MediaSet) -> Plan {
        PLANS[(removed.bits() | stored.bits() << 2) as usize & 15]
    }

    /// The same events, those that store with a session.
    pub(crate) const fn in_session(self) -> Plan {
        const fn of(template: u8) -> u8 {
            match template {
                STORED..CLEARED => template - STORED + STORED_IN_SESSION,
                other => other,
            }
        }
        Plan { first: of(self.first), second: of(self.second) }
    }
}
