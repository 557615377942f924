//! The payload of a message: a time, events, a rank.

use super::cursor::{Cursor, Head, Read};
use super::error::{DecodeError, ErrorClass, EventError, Fault};
use super::event::Event;
use super::item::{pass_over, unwrap_bin};
use super::outline::Outlines;
use super::scalar::Timestamp;
use super::structure::{self, Seen};
use super::{map, positional};

/// A decoded payload. Borrows it; nothing is copied, and events are read as they are iterated over.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    pub(super) payload: &'a [u8],
    pub(super) head: BatchHead,
}

/// What a batch says beside its events, and where these are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchHead {
    timestamp: Timestamp,
    rank: Option<i128>,
    events_at: usize,
    events: u32,
    seen: Seen,
}

impl<'a> Batch<'a> {
    /// Reads frame 3 of a message: `[ts, events]`, `[ts, events, rank]`, more elements (ignored), or a map
    /// `{ts, events, data_parallel_rank}`, in which the rank may also be called `dp_rank` or `attn_dp_rank`.
    ///
    /// The whole payload is checked first: one well-formed msgpack value, nothing behind it, at most
    /// [`MAX_DEPTH`](super::MAX_DEPTH) containers deep. Events are not looked at yet, so what is wrong *in* one of them
    /// is told by [`events`](Batch::events), in its place.
    ///
    /// # Errors
    ///
    /// The payload's structure is broken, or it is no batch. Then no event of it can be trusted.
    pub fn parse(payload: &'a [u8]) -> Result<Batch<'a>, DecodeError> {
        let seen = structure::check(payload, 0)?;
        let head = BatchHead::read(payload, seen)?;
        Ok(Batch { payload, head })
    }

    /// `ts`: the time of sending, with the kind of number it came as.
    #[must_use]
    pub const fn timestamp(&self) -> Timestamp {
        self.head.timestamp
    }

    /// `data_parallel_rank`, any integer; `None` if absent or nil.
    #[must_use]
    pub const fn data_parallel_rank(&self) -> Option<i128> {
        self.head.rank
    }

    /// The rank an event of this batch belongs to: its own `dp_rank`, which is the more particular word, else the
    /// batch's.
    #[must_use]
    pub fn rank_of(&self, event: &Event<'_>) -> Option<i128> {
        event.envelope().and_then(|envelope| envelope.dp_rank).or(self.head.rank)
    }

    /// Number of events, bad ones included.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.head.events as usize
    }

    /// Whether the batch carries no events (a publisher's heartbeat).
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.head.events == 0
    }

    /// The events in order, each for itself: a bad one is an error in its place and costs its siblings nothing.
    #[must_use]
    pub fn events(&self) -> Events<'a> {
        Events {
            cursor: Cursor::new(self.payload, self.head.events_at),
            left: self.head.events,
            seen: self.head.seen,
            next_run: 0,
        }
    }

    /// The events in outline: what happened, to which hashes, on which medium. Token ids and all else are stepped over,
    /// and so are faults in them.
    #[must_use]
    pub fn outlines(&self) -> Outlines<'a> {
        Outlines::new(Cursor::new(self.payload, self.head.events_at), self.head.events)
    }

    /// What [`checked`](Batch::checked) needs to give this batch again.
    #[cfg(all(feature = "zmq", unix))]
    pub(crate) const fn head(&self) -> BatchHead {
        self.head
    }

    /// The batch that `head` was read from, without reading it again.
    #[cfg(all(feature = "zmq", unix))]
    pub(crate) const fn checked(payload: &'a [u8], head: BatchHead) -> Batch<'a> {
        Batch { payload, head }
    }

    /// The payload this was read from.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

impl<'a> IntoIterator for Batch<'a> {
    type Item = Result<Event<'a>, EventError>;
    type IntoIter = Events<'a>;

    fn into_iter(self) -> Events<'a> {
        self.events()
    }
}

impl<'a> IntoIterator for &Batch<'a> {
    type Item = Result<Event<'a>, EventError>;
    type IntoIter = Events<'a>;

    fn into_iter(self) -> Events<'a> {
        self.events()
    }
}

impl BatchHead {
    fn read(payload: &[u8], seen: Seen) -> Result<BatchHead, Fault> {
        let mut cursor = Cursor::new(payload, 0);
        let mut timestamp = None;
        let mut rank = None;
        let mut events = None;
        let mut field = |name: Option<&'static str>, child: usize, cursor: &mut Cursor<'_>| {
            let start = cursor.pos();
            let outcome: Read<()> = match name {
                Some("ts") => Timestamp::parse(cursor).map(|value| timestamp = Some(value)),
                Some("events") => read_events(cursor, seen.end_of(child)).map(|value| events = Some(value)),
                Some(_) => cursor.optional(Cursor::integer).map(|value| rank = value),
                None => cursor.skip(),
            };
            outcome.map_err(|class| Fault { field: name, ..Fault::at(class, start) })
        };
        const NAMES: [&str; 3] = ["ts", "events", "data_parallel_rank"];
        match cursor.head() {
            Ok(Head::Array(len)) => {
                for place in 0..len as usize {
                    field(NAMES.get(place).copied(), place, &mut cursor)?;
                }
            }
            Ok(Head::Map(len)) => {
                for pair in 0..len as usize {
                    let Some(key) = map::key(&mut cursor)? else { continue };
                    let name = match key {
                        b"dp_rank" => Some("dp_rank"),
                        b"attn_dp_rank" => Some("attn_dp_rank"),
                        key => NAMES.into_iter().find(|name| name.as_bytes() == key),
                    };
                    field(name, 2 * pair + 1, &mut cursor)?;
                }
            }
            Ok(_) => return Err(Fault::at(ErrorClass::WrongType, 0)),
            Err(class) => return Err(Fault::at(class, 0)),
        }
        let missing = |name| Fault::in_field(ErrorClass::MissingField, name, cursor.pos());
        let timestamp = timestamp.ok_or(missing("ts"))?;
        let (events_at, events) = events.ok_or(missing("events"))?;
        Ok(BatchHead { timestamp, rank, events_at, events, seen })
    }
}

/// Where the events begin, and how many they are; past all of them, whose end the structural pass may have seen.
fn read_events(cursor: &mut Cursor<'_>, end: Option<usize>) -> Read<(usize, u32)> {
    let len = cursor.array()?;
    let start = cursor.pos();
    match end {
        Some(end) => cursor.seek(end),
        None => cursor.skip_many(u64::from(len))?,
    }
    Ok((start, len))
}

/// Iterator over the events of a [`Batch`]; one item for each, good or bad.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    cursor: Cursor<'a>,
    left: u32,
    seen: Seen,
    next_run: usize,
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<Event<'a>, EventError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let start = self.cursor.pos();
        self.cursor.expect_run(self.seen.run_from(start, &mut self.next_run));
        Some(read_event(&mut self.cursor).map_err(|fault| {
            pass_over(&mut self.cursor, start);
            EventError(fault)
        }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Events<'_> {}

impl std::iter::FusedIterator for Events<'_> {}

impl<'a> Event<'a> {
    /// Reads a single event: a map, an array, or either in a msgpack bin. Bytes behind it are an error.
    ///
    /// # Errors
    ///
    /// The bytes are not one well-formed msgpack value of at most [`MAX_DEPTH`](super::MAX_DEPTH) containers, or not an
    /// event.
    pub fn parse(bytes: &'a [u8]) -> Result<Event<'a>, EventError> {
        structure::check(bytes, 0)?;
        Ok(read_event(&mut Cursor::new(bytes, 0))?)
    }
}

/// Reads the event at `cursor`, in a bin or not. The position counts only if it succeeds.
fn read_event<'a>(cursor: &mut Cursor<'a>) -> Result<Event<'a>, Fault> {
    let start = cursor.pos();
    match cursor.head() {
        Ok(Head::Map(len)) => map::read(cursor, len),
        Ok(Head::Array(len)) => positional::read(cursor, len),
        Ok(Head::Bin(bytes)) => read_wrapped(&unwrap_bin(cursor, bytes)?),
        Ok(_) => Err(Fault::at(ErrorClass::WrongType, start)),
        Err(class) => Err(Fault::at(class, start)),
    }
}

/// Reads an event that stood in a bin; another bin is not opened.
fn read_wrapped<'a>(cursor: &Cursor<'a>) -> Result<Event<'a>, Fault> {
    let mut cursor = *cursor;
    let start = cursor.pos();
    match cursor.head() {
        Ok(Head::Map(len)) => map::read(&mut cursor, len),
        Ok(Head::Array(len)) => positional::read(&mut cursor, len),
        Ok(_) => Err(Fault::at(ErrorClass::WrongType, start)),
        Err(class) => Err(Fault::at(class, start)),
    }
}
