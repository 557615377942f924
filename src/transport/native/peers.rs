//! All connections, by numbers that are not used twice.

use super::peer::Peer;

/// The peers of a hub.
#[derive(Default)]
pub(super) struct Peers {
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Those to whom messages go.
    subscribed: Vec<usize>,
    len: usize,
}

#[derive(Default)]
struct Slot {
    /// How many had it before.
    uses: u32,
    peer: Option<Peer>,
}

impl Peers {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Those to whom messages go, by their places.
    pub(super) fn subscribed(&self) -> &[usize] {
        &self.subscribed
    }

    /// The number of the next peer.
    pub(super) fn next_key(&self) -> u64 {
        let at = self.free.last().copied().unwrap_or(self.slots.len());
        key(at, self.slots.get(at).map_or(0, |slot| slot.uses))
    }

    /// Takes one in, under [`next_key`](Self::next_key).
    pub(super) fn insert(&mut self, peer: Peer) {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        self.slots[at].peer = Some(peer);
        self.len += 1;
    }

    /// The place of a peer that is still there.
    pub(super) fn place(&self, key: u64) -> Option<usize> {
        let (at, uses) = ((key & 0xffff_ffff) as usize, (key >> 32) as u32);
        let slot = self.slots.get(at)?;
        (slot.uses == uses && slot.peer.is_some()).then_some(at)
    }

    pub(super) fn key(&self, at: usize) -> u64 {
        key(at, self.slots[at].uses)
    }

    pub(super) fn get(&self, at: usize) -> Option<&Peer> {
        self.slots.get(at)?.peer.as_ref()
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Peer> {
        self.slots.get_mut(at)?.peer.as_mut()
    }

    pub(super) fn remove(&mut self, at: usize) -> Option<Peer> {
        let slot = self.slots.get_mut(at)?;
        let peer = slot.peer.take()?;
        slot.uses = slot.uses.wrapping_add(1);
        self.free.push(at);
        self.len -= 1;
        self.subscribed.retain(|&other| other != at);
        Some(peer)
    }

    /// Notes whether messages go to a peer; whether that is new.
    pub(super) fn note_subscribed(&mut self, at: usize) -> bool {
        let is = self.get(at).is_some_and(Peer::is_subscribed);
        let was = self.subscribed.contains(&at);
        match (was, is) {
            (false, true) => self.subscribed.push(at),
            (true, false) => self.subscribed.retain(|&other| other != at),
            _ => return false,
        }
        true
    }

    /// All, with their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Peer)> {
        self.slots.iter().enumerate().filter_map(|(at, slot)| Some((at, slot.peer.as_ref()?)))
    }
}

fn key(at: usize, uses: u32) -> u64 {
    u64::from(uses) << 32 | at as u64
}
