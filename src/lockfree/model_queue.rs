//! Stand-ins for crossbeam's queue under loom.

use loom::sync::Mutex;
use std::collections::VecDeque;

/// A bounded queue whose every operation is one step.
#[derive(Debug)]
pub struct ArrayQueue<T> {
    items: Mutex<VecDeque<T>>,
    capacity: usize,
}

#[allow(missing_docs)]
impl<T> ArrayQueue<T> {
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0);
        ArrayQueue { items: Mutex::new(VecDeque::new()), capacity }
    }

    pub fn push(&self, item: T) -> Result<(), T> {
        let mut items = self.items.lock().unwrap();
        if items.len() == self.capacity {
            return Err(item);
        }
        items.push_back(item);
        Ok(())
    }

    pub fn force_push(&self, item: T) -> Option<T> {
        let mut items = self.items.lock().unwrap();
        let victim = if items.len() == self.capacity { items.pop_front() } else { None };
        items.push_back(item);
        victim
    }

    pub fn pop(&self) -> Option<T> {
        self.items.lock().unwrap().pop_front()
    }

    pub fn is_empty(&self) -> bool {
        self.items.lock().unwrap().is_empty()
    }

    pub fn len(&self) -> usize {
        self.items.lock().unwrap().len()
    }
}
