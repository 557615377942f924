//! What one message's `event_id`s say.

/// The `event_id`s of one message, as far as they are reliable.
///
/// A master numbers every event it publishes, +1 each, so its ids run on from message to message whatever was evicted
/// before it was sent. Engines give no ids. Collect one per event, in order, with [`EventIds::collect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EventIds {
    /// The payload could not be read, or none of its events could: it may hold any number of ids.
    #[default]
    Unreadable,
    /// A batch without events: it uses no id.
    Empty,
    /// Events without ids.
    Absent,
    /// `count` events with the ids `first`, `first + 1` and so on.
    Dense {
        /// Id of the first event.
        first: u64,
        /// How many events there are, at least 1.
        count: u64,
    },
    /// Ids that do not follow each other: this producer's ids are no witness.
    Scattered,
}

/// The `event_id` of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventId {
    /// The id.
    Id(u64),
    /// An event without one.
    Absent,
    /// The event could not be decoded. It still took its place, and with it an id if its siblings have ids.
    Unreadable,
}

impl EventIds {
    /// Reads the ids of a batch's events, one item for every event, those that could not be decoded included.
    pub fn collect(events: impl IntoIterator<Item = EventId>) -> EventIds {
        let (mut count, mut absent) = (0u64, false);
        let mut first: Option<Option<u64>> = None;
        for event in events {
            match event {
                // The first event's id follows from any other's, so one that is bad costs no knowledge.
                EventId::Id(id) => match (first, id.checked_sub(count)) {
                    (None, implied) => first = Some(implied),
                    (Some(known), implied) if known == implied => {}
                    _ => first = Some(None),
                },
                EventId::Absent => absent = true,
                EventId::Unreadable => {}
            }
            count += 1;
        }
        match first {
            Some(Some(first)) if !absent => EventIds::Dense { first, count },
            Some(_) => EventIds::Scattered,
            None if count == 0 => EventIds::Empty,
            None if absent => EventIds::Absent,
            None => EventIds::Unreadable,
        }
    }

    /// The ids from the first one on to the first one behind, if they are dense. The end is wide enough never to wrap.
    pub(super) fn range(self) -> Option<(u128, u128)> {
        match self {
            EventIds::Dense { first, count } => Some((first.into(), u128::from(first) + u128::from(count))),
            _ => None,
        }
    }
}

/// The id that the next event should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextId {
    /// No id was seen in this incarnation.
    Unknown,
    /// Exactly this one.
    Exactly(u128),
    /// This one or a later one: messages came by whose ids are unknown.
    AtLeast(u128),
    /// The ids of this incarnation are not dense.
    NoWitness,
}

impl NextId {
    /// The lowest id that does not go back.
    pub(super) fn floor(self) -> Option<u128> {
        match self {
            NextId::Unknown | NextId::NoWitness => None,
            NextId::Exactly(id) | NextId::AtLeast(id) => Some(id),
        }
    }

    /// After a message with these ids, which came right behind the last one or (`after_gap`) behind a gap.
    pub(super) fn after(self, ids: EventIds, after_gap: bool) -> NextId {
        match (ids, self) {
            (_, NextId::NoWitness) | (EventIds::Scattered, _) => NextId::NoWitness,
            (EventIds::Dense { .. }, _) => ids.range().map_or(self, |(_, end)| NextId::Exactly(end)),
            (EventIds::Empty, _) if !after_gap => self,
            (_, NextId::Exactly(id)) => NextId::AtLeast(id),
            _ => self,
        }
    }
}
