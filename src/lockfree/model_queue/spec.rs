//! The queue as a specification.

use super::Call;
use loom::sync::atomic::{AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// A bounded queue that changes in one step, a relaxed read-modify-write, and says that it is empty on the word of a
/// relaxed load: nobody is certain to see a push that did not happen before, and seeing one makes nothing else visible.
#[derive(Debug)]
pub(super) struct Spec<T> {
    capacity: usize,
    tells: bool,
    /// Counts the changes.
    version: AtomicUsize,
    /// The standard library's mutex, which is no step for loom; taken right after the step, so it is never contended.
    contents: Mutex<Contents<T>>,
}

#[derive(Debug)]
struct Contents<T> {
    items: VecDeque<T>,
    /// How many items there were at each version.
    lengths: Vec<usize>,
}

impl<T: Call> Spec<T> {
    pub(super) fn new(capacity: usize, tells: bool) -> Self {
        let contents = Contents { items: VecDeque::new(), lengths: vec![0] };
        Spec { capacity, tells, version: AtomicUsize::new(0), contents: Mutex::new(contents) }
    }

    pub(super) fn push(&self, item: T) -> Result<(), T> {
        self.step(|items| {
            if items.len() == self.capacity {
                return Err(item);
            }
            self.put(items, item);
            Ok(())
        })
    }

    pub(super) fn force_push(&self, item: T) -> Option<T> {
        self.step(|items| {
            let victim = if items.len() == self.capacity { items.pop_front() } else { None };
            self.put(items, item);
            victim
        })
    }

    pub(super) fn pop(&self) -> Option<T> {
        if self.seen_length() == 0 { None } else { self.step(VecDeque::pop_front) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.seen_length() == 0
    }

    fn put(&self, items: &mut VecDeque<T>, item: T) {
        if self.tells {
            item.placed();
        }
        items.push_back(item);
    }

    /// How many items there are as far as this thread must know.
    fn seen_length(&self) -> usize {
        let version = self.version.load(Ordering::Relaxed);
        self.contents.lock().unwrap_or_else(PoisonError::into_inner).lengths[version]
    }

    fn step<R>(&self, change: impl FnOnce(&mut VecDeque<T>) -> R) -> R {
        self.version.fetch_add(1, Ordering::Relaxed);
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        let Contents { items, lengths } = &mut *contents;
        let outcome = change(items);
        lengths.push(items.len());
        outcome
    }
}
