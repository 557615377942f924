//! Fields that this decoder has no place for.

use std::fmt;

use super::cursor::Cursor;
use super::list::sealed::Element;
use super::names::Field;
use super::value::Value;

/// The fields of an event in map form that this decoder does not know, raw: what newer or other producers add, such as
/// `mm_keys`, `lookahead_token_ids`, `remaining_copy_counts`, `worker_id` or `connector_block_hash`.
///
/// A field is unknown if no kind of event has it. Keys that are not UTF-8 text are left out. The positional form has no
/// names, so there are none.
#[derive(Clone, Copy, Default)]
pub struct OtherFields<'a> {
    /// All pairs of the event's map; empty if none of them is unknown.
    pairs: &'a [u8],
    len: u32,
}

impl<'a> OtherFields<'a> {
    pub(super) const fn of_map(pairs: &'a [u8], len: u32) -> Self {
        OtherFields { pairs, len }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Names and values, in wire order; a name that came twice comes twice.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> + use<'a> {
        let mut cursor = Cursor::new(self.pairs, 0);
        let pairs = if self.pairs.is_empty() { 0 } else { self.len };
        // All of it has been read once, so nothing fails here.
        let mut pair = move || {
            let key = cursor.key()?.filter(|key| Field::of(key).is_none());
            match key.and_then(|key| std::str::from_utf8(key).ok()) {
                Some(name) => Value::read(&mut cursor).map(|value| Some((name, value))),
                None => cursor.skip().map(|()| None),
            }
        };
        (0..pairs).map_while(move |_| pair().ok()).flatten()
    }

    /// The value of the field called `name`; of several the last, as with all fields.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.iter().filter(|(found, _)| *found == name).last().map(|(_, value)| value)
    }
}

/// Equal if they are the same fields in the same order.
impl<'b> PartialEq<OtherFields<'b>> for OtherFields<'_> {
    fn eq(&self, other: &OtherFields<'b>) -> bool {
        (self.pairs.is_empty() && other.pairs.is_empty()) || self.iter().eq(other.iter())
    }
}

impl Eq for OtherFields<'_> {}

impl fmt::Debug for OtherFields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
