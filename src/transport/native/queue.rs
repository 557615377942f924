//! Messages as they go over a connection, shared by all peers that they are meant for, and one peer's queue of them.

use crate::transport::Message;
use crate::zmtp::{LONG, MORE};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

/// Bytes of buffers that are kept for the next messages.
const IDLE: usize = 8 << 20;

/// A message in its frames. Nothing of it is copied for a peer.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// May be longer than the message.
    buffer: Vec<u8>,
    len: usize,
    events: u64,
}

impl Shared {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

/// Makes messages, and knows what those hold that are still waited for.
#[derive(Debug, Default)]
pub(super) struct Messages {
    idle: Vec<Arc<Shared>>,
    idle_bytes: usize,
    held: usize,
}

impl Messages {
    /// Bytes of messages that a peer has not taken yet, each counted once.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// The frames of a message; `None` if there is no memory for them. It has to be given back.
    pub(super) fn make(&mut self, message: &Message<'_>) -> Option<Arc<Shared>> {
        let mut head = [0; 21];
        head[..12].copy_from_slice(&[MORE, 0, MORE, 8, 0, 0, 0, 0, 0, 0, 0, 0]);
        head[4..12].copy_from_slice(&message.sequence().to_be_bytes());
        let head_len = match u8::try_from(message.payload_len()) {
            Ok(size) => {
                head[13] = size;
                14
            }
            Err(_) => {
                head[12] = LONG;
                head[13..].copy_from_slice(&(message.payload_len() as u64).to_be_bytes());
                21
            }
        };
        let mut shared = self.idle.pop().unwrap_or_default();
        self.idle_bytes -= shared.buffer.len();
        // Nobody else has one that is idle.
        let place = Arc::get_mut(&mut shared)?;
        place.len = head_len + message.payload_len();
        place.events = message.events();
        if let Some(more) = place.len.checked_sub(place.buffer.len()) {
            place.buffer.try_reserve(more).ok()?;
            place.buffer.resize(place.len, 0);
        }
        let (start, payload) = place.buffer[..place.len].split_at_mut(head_len);
        start.copy_from_slice(&head[..head_len]);
        message.write_payload(payload);
        self.held += place.len;
        Some(shared)
    }

    /// Takes back one holder's share.
    pub(super) fn give_back(&mut self, mut shared: Arc<Shared>) {
        if let Some(last) = Arc::get_mut(&mut shared) {
            self.held -= last.len;
            if self.idle_bytes + last.buffer.len() <= IDLE && self.idle.try_reserve(1).is_ok() {
                self.idle_bytes += last.buffer.len();
                self.idle.push(shared);
            }
        }
    }
}

/// What a peer has still to get: answers of ours, which go first between two messages, and messages.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    answers: Vec<u8>,
    messages: VecDeque<Arc<Shared>>,
    /// Bytes of the first message that are gone.
    at: usize,
    /// Of all messages, whole.
    bytes: usize,
}

impl Outbox {
    pub(super) fn answers(&mut self) -> &mut Vec<u8> {
        &mut self.answers
    }

    pub(super) fn answers_len(&self) -> usize {
        self.answers.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.messages.is_empty()
    }

    pub(super) fn messages(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts a message behind the others; false if there is no memory for that.
    pub(super) fn push(&mut self, shared: &Arc<Shared>) -> bool {
        if self.messages.try_reserve(1).is_err() {
            return false;
        }
        self.bytes += shared.len();
        self.messages.push_back(Arc::clone(shared));
        true
    }

    /// Fills in what is to be written next; returns how many slices.
    pub(super) fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let (first, rest) = match self.messages.front() {
            Some(first) => (&first.bytes()[self.at..], 1),
            None => (&b""[..], 0),
        };
        // Answers never stand within a message.
        let begun = self.at > 0;
        let head = if begun { [first, &self.answers] } else { [&self.answers[..], first] };
        let behind = self.messages.iter().skip(rest).map(|shared| shared.bytes());
        let all = head.into_iter().chain(behind).filter(|bytes| !bytes.is_empty());
        slices.iter_mut().zip(all).map(|(slice, bytes)| *slice = IoSlice::new(bytes)).count()
    }

    /// So many bytes were written, in the order of the slices.
    pub(super) fn written(&mut self, mut bytes: usize, messages: &mut Messages) {
        if self.at > 0 {
            bytes = self.advance(bytes, messages);
        }
        if bytes == 0 {
            return;
        }
        let answers = bytes.min(self.answers.len());
        self.answers.drain(..answers);
        bytes -= answers;
        while bytes > 0 {
            bytes = self.advance(bytes, messages);
        }
    }

    /// Within the first message; returns what is left of the bytes.
    fn advance(&mut self, bytes: usize, messages: &mut Messages) -> usize {
        let Some(first) = self.messages.front() else { return 0 };
        let left = first.len() - self.at;
        if bytes < left {
            self.at += bytes;
            return 0;
        }
        self.at = 0;
        self.bytes -= first.len();
        if let Some(done) = self.messages.pop_front() {
            messages.give_back(done);
        }
        bytes - left
    }

    /// Gives everything back.
    pub(super) fn clear(&mut self, messages: &mut Messages) {
        self.messages.drain(..).for_each(|shared| messages.give_back(shared));
        (self.at, self.bytes) = (0, 0);
    }
}
