//! Events that own their bytes.

use super::encode::{Form, encode_event};
use crate::decode::{ByPlace, Cleared, Event};
use std::fmt;

/// An event that owns its bytes: the event in map form, about as large as it was on the wire.
#[derive(Clone)]
pub struct OwnedEvent {
    encoded: Box<[u8]>,
    /// Of a cleared event that came in positional form, which the map does not tell.
    by_place: ByPlace,
}

impl OwnedEvent {
    /// The borrowed form. Reads the event again, so keep what it returns where you need it more than once.
    #[must_use]
    pub fn event(&self) -> Event<'_> {
        match Event::parse(&self.encoded) {
            Ok(Event::Cleared(cleared)) => Event::Cleared(Cleared { by_place: self.by_place, ..cleared }),
            Ok(event) => event,
            Err(error) => unreachable!("an event that was encoded by this crate does not decode: {error}"),
        }
    }

    /// The event in map form, as an engine would send it.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        &self.encoded
    }
}

impl Event<'_> {
    /// An event of its own. Lists are copied as they are, so the memory taken is in proportion to the event's bytes.
    ///
    /// # Panics
    ///
    /// An event that was decoded never panics. One built by hand does if no decoder could read it
    /// (see [`EncodeError`](super::EncodeError)).
    #[must_use]
    pub fn into_owned(self) -> OwnedEvent {
        let by_place = match &self {
            Event::Cleared(cleared) => cleared.by_place,
            _ => ByPlace::default(),
        };
        let mut encoded = Vec::new();
        match encode_event(&self, Form::Map, &mut encoded) {
            Ok(()) => OwnedEvent { encoded: encoded.into_boxed_slice(), by_place },
            Err(error) => panic!("an event built by hand cannot be encoded: {error}"),
        }
    }
}

/// Equal if the events are.
impl PartialEq for OwnedEvent {
    fn eq(&self, other: &Self) -> bool {
        self.event() == other.event()
    }
}

impl fmt::Debug for OwnedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.event().fmt(f)
    }
}

#[cfg(feature = "serde")]
/// As [`Event`].
impl serde::Serialize for OwnedEvent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.event().serialize(serializer)
    }
}
