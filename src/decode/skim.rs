//! Stepping over the events of stores, which are most of what comes from them: the same keys in the same order.
//!
//! Where a value ends is known only once its marker was looked at, so a walk from value to value waits for each byte. A key
//! that was expected has a length that is known beforehand, and so have most values behind it: a processor that guesses
//! right goes on without waiting. Nothing is taken for granted: what is not as expected is left to the ordinary walk.

use super::names::keys;

/// What a value is likely to be.
#[derive(Clone, Copy)]
enum Likely {
    Number,
    Text,
    Nothing,
}

/// Bytes of a value that are looked at.
const LOOK: usize = 9;

/// Steps over the pairs that a store's event begins with, at most `left` keys and values: where it stopped, and how many are
/// still to do. All that was stepped over are keys and leaves, or empty arrays, all of them there.
#[inline]
pub(super) fn skip_known(data: &[u8], mut pos: usize, mut left: u64) -> (usize, u64) {
    macro_rules! step {
        ($name:ident $likely:ident) => {{
            // Key and value are looked at together, so that one look tells that there is anything to look at.
            const KEY: usize = keys::$name.len();
            let next = data.get(pos..).and_then(|rest| rest.first_chunk::<{ KEY + LOOK }>());
            let next = next.and_then(|next| next.split_first_chunk::<KEY>()).filter(|(key, _)| **key == keys::$name);
            let end = next.and_then(|(_, value)| Some(pos + KEY + size(value.first_chunk()?, Likely::$likely)?));
            if let Some(end) = end.filter(|end| left >= 2 && *end <= data.len()) {
                pos = end;
                left -= 2;
            }
        }};
    }
    let before = left;
    step!(EventId Number);
    if left == before {
        return (pos, left);
    }
    step!(Timestamp Number);
    step!(EventType Text);
    step!(Type Text);
    step!(ModelName Text);
    step!(BlockSize Number);
    step!(AdditionalSalt Text);
    step!(LoraName Text);
    step!(TenantId Text);
    step!(BackendId Text);
    step!(Medium Text);
    step!(DpRank Number);
    step!(GroupId Text);
    step!(ObjectKey Text);
    step!(SeqHashes Nothing);
    step!(BlockHashes Nothing);
    step!(SessionId Text);
    step!(BaseBlockIdx Number);
    step!(ParentHash Number);
    step!(TokenIds Nothing);
    step!(ParentBlockHash Number);
    (pos, left)
}

/// Size of the value that begins so, if it is one that is easily stepped over.
#[inline(always)]
fn size(value: &[u8; LOOK], likely: Likely) -> Option<usize> {
    Some(match (likely, *value) {
        (_, [0xc0 | 0x90, ..]) => 1,
        (Likely::Number, [0xcf, ..]) => 9,
        (Likely::Number, [0..=0x7f, ..]) => 1,
        (Likely::Text, [marker @ 0xa0..=0xbf, ..]) => 1 + usize::from(marker & 0x1f),
        (Likely::Text, [0xd9, len, ..]) => 2 + usize::from(len),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::cursor::Cursor;
    use super::super::event::Event;
    use super::*;
    use proptest::prelude::*;

    /// The keys in the order in which stores write them.
    const KEYS: [&[u8]; 21] = [
        &keys::EventId,
        &keys::Timestamp,
        &keys::EventType,
        &keys::Type,
        &keys::ModelName,
        &keys::BlockSize,
        &keys::AdditionalSalt,
        &keys::LoraName,
        &keys::TenantId,
        &keys::BackendId,
        &keys::Medium,
        &keys::DpRank,
        &keys::GroupId,
        &keys::ObjectKey,
        &keys::SeqHashes,
        &keys::BlockHashes,
        &keys::SessionId,
        &keys::BaseBlockIdx,
        &keys::ParentHash,
        &keys::TokenIds,
        &keys::ParentBlockHash,
    ];

    /// A value of any kind, usual or not, whole or cut.
    fn value() -> impl Strategy<Value = Vec<u8>> {
        let text = |text: String| [&[0xd9, text.len() as u8][..], text.as_bytes()].concat();
        prop_oneof![
            4 => Just(vec![0xc0]),
            2 => Just(vec![0x90]),
            4 => any::<u64>().prop_map(|number| [&[0xcf][..], &number.to_be_bytes()].concat()),
            2 => (0..0x80_u8).prop_map(|number| vec![number]),
            1 => any::<i16>().prop_map(|number| [&[0xd1][..], &number.to_be_bytes()].concat()),
            4 => Just(b"\xa6stored".to_vec()),
            4 => Just(b"\xabBlockStored".to_vec()),
            2 => Just(b"\xa7removed".to_vec()),
            1 => Just(b"\xa7cleared".to_vec()),
            4 => "[a-z]{0,40}".prop_map(text),
            1 => "\\PC{0,8}".prop_map(text),
            1 => Just(b"\xa2\xff\xfe".to_vec()),
            1 => Just(vec![0x92, 0x07, 0xcd, 0x01, 0x00]),
            1 => Just(vec![0x81, 0xa1, b'k', 0x90]),
        ]
    }

    /// Pairs, mostly all of them in order, with tags that mostly agree.
    fn pairs() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let values = prop::collection::vec((prop::bool::weighted(0.95), value()), KEYS.len());
        (values, prop::bool::weighted(0.8)).prop_map(|(values, tagged)| {
            let pair = |(key, (there, value)): (&[u8], (bool, Vec<u8>))| {
                let value = match key {
                    _ if !tagged => value,
                    key if key == keys::EventType => b"\xa6stored".to_vec(),
                    key if key == keys::Type => b"\xabBlockStored".to_vec(),
                    _ => value,
                };
                there.then(|| [key, &value[..]].concat())
            };
            KEYS.into_iter().zip(values).filter_map(pair).collect()
        })
    }

    fn map(pairs: &[Vec<u8>]) -> Vec<u8> {
        [&[0xde, 0, pairs.len() as u8][..], &pairs.concat()].concat()
    }

    proptest! {
        #[test]
        fn what_is_expected_is_stepped_over_as_the_ordinary_walk_does(pairs in pairs(), cut in 0..40_usize) {
            let whole = map(&pairs);
            let data = &whole[..whole.len().saturating_sub(cut)];
            let all = 2 * pairs.len() as u64;
            let (pos, left) = skip_known(data, 3.min(data.len()), all);
            prop_assert!(pos <= data.len() && left % 2 == 0);
            let mut cursor = Cursor::new(data, 3.min(data.len()));
            prop_assert_eq!(cursor.skip_many(all - left), Ok(()));
            prop_assert_eq!(cursor.pos(), pos);
        }

        #[test]
        fn an_event_in_the_usual_order_reads_as_in_any_other(pairs in pairs(), turn in 1..20_usize) {
            let mut turned = pairs.clone();
            turned.rotate_left(turn % pairs.len().max(1));
            let (usual, other) = (map(&pairs), map(&turned));
            let (usual, other) = (Event::parse(&usual), Event::parse(&other));
            match (usual, other) {
                (Ok(usual), Ok(other)) => prop_assert_eq!(usual, other),
                // Of more than one fault, the first is told.
                (Err(usual), Err(_)) => prop_assert!(!usual.to_string().is_empty()),
                (usual, other) => prop_assert!(false, "{usual:?} in order, {other:?} out of it"),
            }
        }
    }
}
