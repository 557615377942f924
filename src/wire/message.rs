//! The payload of a message: a batch of encoded calls between a header and the rank.

use super::encode::Encoder;
use super::frame::{EVENT_ID_AT, Frame, TIMESTAMP_AT};
use crate::lockfree::Call;
use rmp::encode as msgpack;
use std::sync::Arc;

/// `[`, the timestamp, and at most 5 bytes of array header.
const LONGEST_HEADER: usize = 1 + 9 + 5;

/// Puts payloads together for one publisher.
#[derive(Debug)]
pub struct PayloadWriter {
    encoder: Arc<Encoder>,
    dp_rank: Box<[u8]>,
}

impl PayloadWriter {
    /// A writer of what `encoder` encoded.
    pub fn new(encoder: Arc<Encoder>, dp_rank: u32) -> Self {
        let mut bytes = Vec::new();
        msgpack::write_uint(&mut bytes, dp_rank.into()).expect("writing to memory does not fail");
        PayloadWriter { encoder, dp_rank: bytes.into() }
    }

    /// The header of a payload of `calls`, sent at `timestamp` ms.
    pub fn header<'a>(&self, timestamp: u64, calls: impl Iterator<Item = &'a Frame>) -> Header {
        let (mut events, mut calls_len) = (0, 0);
        for call in calls {
            events += call.events();
            calls_len += call.bytes();
            // The lines of its size are there by now; those of its names are asked for while the others are looked at.
            call.prefetch();
        }
        let mut bytes = [0; LONGEST_HEADER];
        let mut rest = &mut bytes[..];
        let written = msgpack::write_array_len(&mut rest, 3)
            .and_then(|_| msgpack::write_u64(&mut rest, timestamp))
            .and_then(|()| msgpack::write_array_len(&mut rest, events as u32));
        debug_assert!(written.is_ok());
        let header_len = LONGEST_HEADER - rest.len();
        let len = header_len + calls_len + self.dp_rank.len();
        Header { bytes, header_len, len, timestamp, events }
    }

    /// Writes the payload over `out`, which is exactly as long as [`Header::len`] says, numbering its events from
    /// `event_id`.
    pub fn write<'a>(
        &self,
        header: &Header,
        calls: impl Iterator<Item = &'a Frame>,
        mut event_id: u64,
        out: &mut [u8],
    ) {
        let (head, mut rest) = out.split_at_mut(header.header_len);
        head.copy_from_slice(&header.bytes[..header.header_len]);
        for call in calls {
            let [tenant, group, key, session] = call.parts();
            for template in self.encoder.templates(call.plan()) {
                let place = std::mem::take(&mut rest);
                let mut at = 0;
                for part in [&*template.until_tenant, tenant, &template.until_group, group, &template.until_key, key] {
                    place[at..at + part.len()].copy_from_slice(part);
                    at += part.len();
                }
                let mut end = at + template.rest.len();
                place[at..end].copy_from_slice(&template.rest);
                if let Some(behind_session) = &template.behind_session {
                    for part in [session, behind_session] {
                        place[end..end + part.len()].copy_from_slice(part);
                        end += part.len();
                    }
                }
                put_u64(place, EVENT_ID_AT, event_id);
                put_u64(place, TIMESTAMP_AT, header.timestamp);
                event_id += 1;
                rest = &mut place[end..];
            }
        }
        rest.copy_from_slice(&self.dp_rank);
    }
}

/// What a payload begins with.
#[derive(Debug)]
pub struct Header {
    bytes: [u8; LONGEST_HEADER],
    header_len: usize,
    len: usize,
    timestamp: u64,
    events: u64,
}

impl Header {
    /// Events in the payload.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Length of the payload, bytes.
    #[allow(clippy::len_without_is_empty, reason = "no payload is empty")]
    pub fn len(&self) -> usize {
        self.len
    }
}

fn put_u64(place: &mut [u8], at: usize, value: u64) {
    place[at..at + 8].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::MediaSet;
    use crate::object::Object;
    use crate::wire::encode::{CallLayout, Context};
    use serde_json::{Value, json};

    fn frame(call: &CallLayout<'_>) -> Frame {
        let mut frame = Frame::with_room(call.room()).unwrap();
        assert!(call.write(&mut frame));
        frame
    }

    fn payload(legacy: bool, calls: impl FnOnce(&Encoder) -> Vec<Frame>) -> Value {
        let context =
            Context { model_name: "m", block_size: 16, backend_id: "b", dp_rank: 3, legacy, ..Context::default() };
        let encoder = Arc::new(Encoder::new(&context));
        let writer = PayloadWriter::new(Arc::clone(&encoder), 3);
        let calls = calls(&encoder);
        let header = writer.header(1_700_000_000_000, calls.iter());
        let mut out = vec![0xff; header.len()];
        writer.write(&header, calls.iter(), 7, &mut out);
        rmp_serde::from_slice(&out).unwrap()
    }

    #[test]
    fn a_call_of_two_events_has_its_strings_in_both() {
        let object = Object::new("", "key").in_group("group");
        let seen = payload(true, |encoder| vec![frame(&encoder.object_call(&object, MediaSet::CPU, MediaSet::DISK))]);
        let event = |id: u64, event_type: &str, legacy: &str, medium: &str| {
            json!({
                "event_id": id, "timestamp": 1_700_000_000_000_u64, "event_type": event_type, "type": legacy,
                "model_name": "m", "block_size": 16, "additional_salt": null, "lora_name": null, "tenant_id": "default",
                "backend_id": "b", "medium": medium, "dp_rank": 3, "group_id": "group", "object_key": "key",
                "seq_hashes": [], "block_hashes": [], "base_block_idx": null,
            })
        };
        let removed = event(7, "removed", "BlockRemoved", "cpu");
        let mut stored = event(8, "stored", "BlockStored", "disk");
        for field in ["parent_hash", "token_ids", "parent_block_hash"] {
            stored[field] = Value::Null;
        }
        assert_eq!(seen, json!([1_700_000_000_000_u64, [removed, stored], 3]));
    }

    #[test]
    fn a_session_is_in_what_is_stored_alone_and_does_not_stay_in_the_buffer() {
        let object = Object::new("t", "key");
        let sessions = ["", "s", &"s".repeat(300)];
        for session in sessions {
            for legacy in [true, false] {
                let seen = payload(legacy, |encoder| {
                    let mut frame = Frame::with_room(16).unwrap();
                    let earlier = object.in_session("earlier");
                    assert!(encoder.object_call(&earlier, MediaSet::EMPTY, MediaSet::BOTH).write(&mut frame));
                    let call = encoder.object_call(&object.in_session(session), MediaSet::DISK, MediaSet::CPU);
                    assert!(call.write(&mut frame));
                    vec![frame]
                });
                let [removed, stored] = &seen[1].as_array().unwrap()[..] else { panic!("{seen}") };
                assert_eq!(removed.get("session_id"), None);
                let told = stored.get("session_id").map_or("", |told| told.as_str().unwrap());
                assert_eq!((told, stored.get("session_id").is_some()), (session, !session.is_empty()));
                assert_eq!((&stored["object_key"], &stored["base_block_idx"]), (&json!("key"), &Value::Null));
            }
        }
    }

    #[test]
    fn a_cleared_has_no_object() {
        let seen = payload(false, |encoder| vec![frame(&encoder.cleared_call("t"))]);
        let event = json!({
            "event_id": 7, "timestamp": 1_700_000_000_000_u64, "event_type": "cleared", "model_name": "m", "block_size": 16,
            "additional_salt": null, "lora_name": null, "tenant_id": "t", "backend_id": "b", "medium": null, "dp_rank": 3,
        });
        assert_eq!(seen, json!([1_700_000_000_000_u64, [event], 3]));
    }

    #[test]
    fn texts_of_every_length_class_are_read_back() {
        for len in [0, 1, 31, 32, 255, 256, 65_535, 65_536, 100_000] {
            let text = "x".repeat(len);
            let object = Object::new("t", &text).in_group(&text).in_session(&text);
            let seen = payload(true, |encoder| {
                // A buffer that has held something longer, and one that has to grow.
                let mut frame = Frame::with_room(16).unwrap();
                assert!(
                    encoder.object_call(&Object::new("other", "y"), MediaSet::BOTH, MediaSet::EMPTY).write(&mut frame)
                );
                assert!(encoder.object_call(&object, MediaSet::EMPTY, MediaSet::CPU).write(&mut frame));
                vec![frame]
            });
            assert_eq!(seen[1][0]["object_key"], Value::String(text.clone()));
            let group = if len == 0 { Value::Null } else { Value::String(text) };
            assert_eq!((&seen[1][0]["group_id"], &seen[1][0]["session_id"]), (&group, &group));
        }
    }
}
