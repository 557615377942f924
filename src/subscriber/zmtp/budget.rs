//! What may be kept, of one frame and of all of them.

/// What may be kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Largest frame, bytes.
    pub frame: u64,
    /// Longest topic, bytes.
    pub topic: u64,
}

/// Bytes that all connections of a subscriber may hold of payloads still on their way.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    used: u64,
}

impl Budget {
    /// A budget of this many bytes, none of them taken.
    pub fn new(limit: u64) -> Self {
        Budget { limit, used: 0 }
    }

    /// One payload is always let in, whatever its size.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        let fits = self.used == 0 || self.used.saturating_add(bytes) <= self.limit;
        if fits {
            self.used += bytes;
        }
        fits
    }

    /// Bytes that are taken.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Gives back what was taken.
    pub fn give_back(&mut self, bytes: u64) {
        self.used -= bytes;
    }
}

/// Payloads up to this size count in no budget: each connection may have one.
pub(super) const SMALL: u64 = 64 << 10;
/// A frame above the limit is passed over if it has at most this many bytes: losing the connection would cost more.
pub(super) const PASSED_OVER: u64 = 1 << 30;
