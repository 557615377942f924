//! Idle frames: calls take one, whoever is done with it gives it back. Nothing here waits.

use super::frames::{Call, Frames, Held, RUN};
use super::stack::Stack;
use crate::sync::{Counter, LANES, UnsafeCell, lane};
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicU32 as Length, Ordering};

/// Frames in one lane at most: two runs, so that one that is just full gives a run away and one that is just empty takes one,
/// and neither is a step for every call.
const LANE: usize = 2 * RUN;
/// Frames are fetched ahead in groups: first the lines of the frames, a group later what they point to. Not one by one, since
/// an atomic read-modify-write, of which each call has two, waits for every fetch that was begun before it: so one call in a
/// group waits for all of them at once. A group of this size is about what a processor can have under way.
const GROUP: usize = RUN / 3;
/// With so many frames left a lane takes the next run, so that its frames, too, are fetched before they are needed; a few
/// calls before that, the line that names them.
const LOW: u32 = 2 * GROUP as u32 + 1;
const SOON: u32 = LOW + 2;

/// The frames that are idle, in three parts.
///
/// Each thread has a *lane* of its own, from which it takes its next frames in the order in which they were given to it, so
/// that they can be fetched ahead; what the thread evicts goes there. An empty lane takes a *run* of frames at once from the
/// stack of runs, and a full one gives a run away; so does the sender. Threads beyond the number of lanes use a stack of
/// *spare* frames instead.
///
/// It starts empty and grows on demand, by a run, up to the bound of the table. A frame that has grown above the retain limit
/// loses its memory when it is given back, so one huge key leaves no huge buffer behind.
#[derive(Debug)]
pub struct Pool<T> {
    frames: Frames<T>,
    lanes: Box<[CachePadded<Lane>]>,
    /// Nodes that hold the indices of a run of idle frames.
    full: CachePadded<Stack>,
    /// Nodes that hold nothing.
    empty: CachePadded<Stack>,
    /// Single idle frames.
    spare: CachePadded<Stack>,
    retain: usize,
    freed: Counter,
    // On lines of their own: what is above is read by every call.
    runs_given: CachePadded<Counter>,
    runs_taken: CachePadded<Counter>,
    spares_given: CachePadded<Counter>,
    spares_taken: CachePadded<Counter>,
}

/// A thread's next frames, first in, first out. Only the thread that has the lane's number may touch `queue`.
#[derive(Debug)]
struct Lane {
    length: Length,
    queue: UnsafeCell<LaneQueue>,
}

#[derive(Debug)]
struct LaneQueue {
    first: u32,
    length: u32,
    /// Calls until the next group is fetched.
    fetched: u32,
    indices: [u32; LANE],
}

// SAFETY: `lane()` gives a number to one living thread at a time, and hands it on with Release and Acquire.
unsafe impl Sync for Lane {}

/// What the sender gives back, until it is a run.
#[derive(Debug, Default)]
pub struct Returns {
    length: usize,
    indices: [u32; RUN],
}

impl<T: Call> Pool<T> {
    /// A pool of at least `most` frames, each of which may keep `retain` bytes; `None` if there is no memory for its tables.
    pub fn new(most: usize, retain: usize) -> Option<Self> {
        let most = most + LANES * LANE + RUN;
        Some(Pool {
            frames: Frames::new(most)?,
            lanes: (0..LANES).map(|_| CachePadded::new(Lane::new())).collect(),
            full: CachePadded::new(Stack::new()),
            empty: CachePadded::new(Stack::new()),
            spare: CachePadded::new(Stack::new()),
            retain,
            freed: Counter::new(),
            runs_given: CachePadded::new(Counter::new()),
            runs_taken: CachePadded::new(Counter::new()),
            spares_given: CachePadded::new(Counter::new()),
            spares_taken: CachePadded::new(Counter::new()),
        })
    }

    /// Bits that an index of a pool of that size needs.
    pub fn index_bits(most: usize) -> u32 {
        let runs = (most + LANES * LANE + RUN).div_ceil(RUN) + 1;
        usize::BITS - runs.leading_zeros() + super::frames::PLACE_BITS
    }

    /// The frames.
    #[inline(always)]
    pub fn frames(&self) -> &Frames<T> {
        &self.frames
    }

    /// An idle frame; made, with others and with `room` for the call at hand, if there is none. `None` if that cannot be done.
    #[inline]
    pub fn take(&self, room: usize) -> Option<Held> {
        let Some(number) = lane() else { return self.take_spare(room) };
        let lane = &self.lanes[number.get()];
        // SAFETY: the lane is this thread's, and this closure calls nothing that could come here again.
        let index = lane.queue.with_mut(|queue| unsafe { (*queue).take(self) });
        match index {
            Some(index) => {
                lane.count();
                Some(Held::of(index))
            }
            None => self.refill(lane, room),
        }
    }

    /// Gives back a frame that this thread will use again; `heavy` if it may be above the retain limit.
    #[inline]
    pub fn give(&self, mut held: Held, heavy: bool) {
        if heavy {
            self.trim(&mut held);
        }
        let Some(number) = lane() else { return self.give_spare(held) };
        let lane = &self.lanes[number.get()];
        // SAFETY: as in `take`.
        let surplus = lane.queue.with_mut(|queue| unsafe { (*queue).give(held.into_index()) });
        if let Some(surplus) = surplus {
            self.give_run(surplus);
        }
        lane.count();
    }

    /// Gives back a frame that the sender has dealt with.
    pub fn give_far(&self, mut held: Held, returns: &mut Returns) {
        if self.frames.get(&held).footprint() > self.retain {
            self.trim(&mut held);
        }
        returns.indices[returns.length] = held.into_index();
        returns.length += 1;
        if returns.length == RUN {
            returns.length = 0;
            self.give_run(returns.indices);
        }
    }

    /// Gives back what the sender had not yet given back, at its end.
    pub fn give_rest(&self, returns: &mut Returns) {
        for &index in &returns.indices[..std::mem::take(&mut returns.length)] {
            self.give_spare(Held::of(index));
        }
    }

    /// Whether a frame of that footprint has to be trimmed when it is given back.
    #[inline(always)]
    pub fn is_heavy(&self, footprint: usize) -> bool {
        footprint > self.retain
    }

    #[cold]
    fn refill(&self, lane: &Lane, room: usize) -> Option<Held> {
        let mut run = match self.take_run() {
            Some(run) => run,
            None => match self.pop_spare() {
                Some(held) => return Some(held),
                None => self.make_run(room)?,
            },
        };
        // SAFETY: as in `take`; the lane is empty.
        lane.queue.with_mut(|queue| unsafe { (*queue).fill(&mut run, self) });
        lane.count();
        Some(Held::of(run[0]))
    }

    #[cold]
    fn take_spare(&self, room: usize) -> Option<Held> {
        if let Some(held) = self.pop_spare() {
            return Some(held);
        }
        let run = match self.take_run() {
            Some(run) => run,
            None => self.make_run(room)?,
        };
        let [first, rest @ ..] = run;
        for index in rest {
            self.give_spare(Held::of(index));
        }
        Some(Held::of(first))
    }

    fn pop_spare(&self) -> Option<Held> {
        let index = self.spare.pop(|index| self.frames.link(index))?;
        self.spares_taken.add(1);
        Some(Held::of(index))
    }

    fn give_spare(&self, held: Held) {
        self.spares_given.add(1);
        self.spare.push(held.into_index(), |index| self.frames.link(index));
    }

    /// Tells the processor that the run on top will be taken soon.
    fn prefetch_run(&self) {
        #[cfg(not(kv_events_loom))]
        self.frames.prefetch_node(self.full.top());
    }

    fn take_run(&self) -> Option<[u32; RUN]> {
        let number = self.full.pop(|number| &self.frames.node(number).link)?;
        self.runs_taken.add(1);
        // SAFETY: the node was popped by this thread and is in no stack.
        let run = self.frames.node(number).indices.with(|indices| unsafe { *indices });
        self.empty.push(number, |number| &self.frames.node(number).link);
        Some(run)
    }

    fn give_run(&self, run: [u32; RUN]) {
        let number = self.empty.pop(|number| &self.frames.node(number).link);
        // There are as many nodes as runs of frames, and each one that is elsewhere holds a run, or its thread does. So there
        // is one; if not, the frames need not be lost.
        let Some(number) = number else { return run.into_iter().for_each(|index| self.give_spare(Held::of(index))) };
        // SAFETY: as in `take_run`.
        self.frames.node(number).indices.with_mut(|indices| unsafe { *indices = run });
        self.runs_given.add(1);
        self.full.push(number, |number| &self.frames.node(number).link);
    }

    fn make_run(&self, room: usize) -> Option<[u32; RUN]> {
        let number = self.frames.grow(room)?;
        self.empty.push(number, |number| &self.frames.node(number).link);
        let mut run = [0; RUN];
        run.iter_mut().zip(Frames::<T>::indices(number)).for_each(|(place, index)| *place = index);
        Some(run)
    }

    #[cold]
    fn trim(&self, held: &mut Held) {
        let frame = self.frames.get_mut(held);
        if frame.footprint() > self.retain {
            frame.trim();
            self.freed.add(1);
        }
    }

    /// Every idle frame, for models and stress tests at rest.
    pub fn drain(&mut self) -> Vec<Held> {
        let mut all = Vec::new();
        for lane in &self.lanes {
            // SAFETY: the pool is borrowed mutably, so no call is under way.
            while let Some(index) = lane.queue.with_mut(|queue| unsafe { (*queue).take(self) }) {
                all.push(Held::of(index));
            }
        }
        while let Some(run) = self.take_run() {
            all.extend(run.map(Held::of));
        }
        all.extend(std::iter::from_fn(|| self.pop_spare()));
        all
    }

    /// The fault that makes two of one frame.
    pub(super) fn give_twice(&self, held: &Held) {
        self.give(Held::of(held.index()), false);
    }

    /// Frames that were made because none was idle.
    pub fn made(&self) -> u64 {
        (self.frames.made() * RUN) as u64
    }

    /// Frames whose memory was freed because they had grown over the limit.
    pub fn freed(&self) -> u64 {
        self.freed.get()
    }

    /// Frames idle now; stale as soon as it is read, and without the few that the sender is about to give back.
    pub fn idle(&self) -> u64 {
        let lanes: u64 = self.lanes.iter().map(|lane| u64::from(lane.length.load(Ordering::Relaxed))).sum();
        let runs = self.runs_given.get().saturating_sub(self.runs_taken.get());
        let spares = self.spares_given.get().saturating_sub(self.spares_taken.get());
        lanes + runs * RUN as u64 + spares
    }
}

impl Lane {
    fn new() -> Self {
        let queue = LaneQueue { first: 0, length: 0, fetched: 0, indices: [0; LANE] };
        Lane { length: Length::new(0), queue: UnsafeCell::new(queue) }
    }

    /// Shows its length to others. Relaxed, and not modelled: a figure.
    #[inline(always)]
    fn count(&self) {
        // SAFETY: the lane is this thread's.
        let length = self.queue.with(|queue| unsafe { (*queue).length });
        self.length.store(length, Ordering::Relaxed);
    }
}

impl LaneQueue {
    /// The next frame; those behind it are fetched ahead.
    #[inline(always)]
    fn take<T: Call>(&mut self, pool: &Pool<T>) -> Option<u32> {
        match self.length {
            0 => return None,
            LOW => self.append_run(pool),
            SOON => pool.prefetch_run(),
            _ => {}
        }
        let index = self.indices[self.first as usize];
        self.fetch_ahead(pool);
        self.first = if self.first + 1 == LANE as u32 { 0 } else { self.first + 1 };
        self.length -= 1;
        Some(index)
    }

    /// Puts the next run behind the frames that are left, if there is one.
    #[inline(never)]
    fn append_run<T: Call>(&mut self, pool: &Pool<T>) {
        for index in pool.take_run().into_iter().flatten() {
            let place = self.first as usize + self.length as usize;
            self.indices[if place >= LANE { place - LANE } else { place }] = index;
            self.length += 1;
        }
    }

    #[inline(always)]
    fn at(&self, ahead: usize) -> u32 {
        let place = self.first as usize + ahead;
        self.indices[if place >= LANE { place - LANE } else { place }]
    }

    #[inline(always)]
    fn fetch_ahead<T: Call>(&mut self, pool: &Pool<T>) {
        match self.fetched {
            0 => self.fetch_group(pool),
            _ => self.fetched -= 1,
        }
    }

    /// Fetches what the next group of frames points to, and the lines of the group behind it.
    #[inline(never)]
    fn fetch_group<T: Call>(&mut self, pool: &Pool<T>) {
        let length = self.length as usize;
        (1..length.min(GROUP + 1)).for_each(|ahead| pool.frames.get(&Held::of(self.at(ahead))).prefetch_for_writing());
        (GROUP + 1..length.min(2 * GROUP + 1)).for_each(|ahead| pool.frames.prefetch_for_writing(self.at(ahead)));
        self.fetched = GROUP as u32 - 1;
    }

    /// Puts a frame behind the others; returns the run that has to go if there is no room.
    #[inline(always)]
    fn give(&mut self, index: u32) -> Option<[u32; RUN]> {
        let surplus = (self.length as usize == LANE).then(|| self.take_newest());
        let length = self.length as usize;
        let place = self.first as usize + length;
        self.indices[if place >= LANE { place - LANE } else { place }] = index;
        self.length += 1;
        surplus
    }

    /// The run at the end, which is not fetched yet.
    #[cold]
    fn take_newest(&mut self) -> [u32; RUN] {
        self.length -= RUN as u32;
        std::array::from_fn(|ahead| self.at(self.length as usize + ahead))
    }

    /// Fills an empty lane with all of a run but its first, and fetches the first of them.
    fn fill<T: Call>(&mut self, run: &mut [u32; RUN], pool: &Pool<T>) {
        self.first = 0;
        self.length = RUN as u32 - 1;
        self.indices[..RUN - 1].copy_from_slice(&run[1..]);
        // The lines of frames first, all at once; what they point to once they are there.
        run.iter().for_each(|&index| pool.frames.prefetch_for_writing(index));
        pool.frames.get(&Held::of(run[0])).prefetch_for_writing();
        self.fetch_group(pool);
    }
}
