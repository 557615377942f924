//! Reads the publisher's payloads fast, sharing no code with the crate: the few fields that the checks need.

use rmp::Marker;
use rmp::decode::{read_array_len, read_int, read_map_len, read_marker, read_str_from_slice};

#[derive(Debug, PartialEq, Eq)]
pub struct Event<'a> {
    pub id: u64,
    pub timestamp: u64,
    pub stored: bool,
    pub cleared: bool,
    pub tenant: &'a str,
    pub medium: u8,
    pub key: &'a str,
    pub group: &'a str,
}

/// Hands every event of a payload to `each`; returns the payload's timestamp.
pub fn read<'a>(payload: &'a [u8], mut each: impl FnMut(Event<'a>)) -> Result<u64, String> {
    let mut rest = payload;
    let wrong = |what: &str| format!("the payload has no {what}");
    if read_array_len(&mut rest).ok() != Some(3) {
        return Err(wrong("three parts"));
    }
    let timestamp = read_int(&mut rest).map_err(|_| wrong("timestamp"))?;
    let events = read_array_len(&mut rest).map_err(|_| wrong("events"))?;
    for _ in 0..events {
        let (event, behind) = read_event(rest)?;
        if event.timestamp != timestamp {
            return Err(format!("an event of {} in a batch of {timestamp}", event.timestamp));
        }
        each(event);
        rest = behind;
    }
    let _: u64 = read_int(&mut rest).map_err(|_| wrong("rank"))?;
    if rest.is_empty() { Ok(timestamp) } else { Err(format!("{} bytes behind the payload", rest.len())) }
}

fn read_event(bytes: &[u8]) -> Result<(Event<'_>, &[u8]), String> {
    let mut rest = bytes;
    let fields = read_map_len(&mut rest).map_err(|error| format!("an event is no map: {error}"))?;
    let mut event =
        Event { id: 0, timestamp: 0, stored: false, cleared: false, tenant: "", medium: 0, key: "", group: "" };
    for _ in 0..fields {
        let (name, behind) = read_str_from_slice(rest).map_err(|error| format!("a field has no name: {error}"))?;
        rest = behind;
        match name {
            "event_id" | "timestamp" => {
                let number = read_int(&mut rest).map_err(|error| format!("{name}: {error}"))?;
                if name == "event_id" { event.id = number } else { event.timestamp = number }
            }
            _ => {
                let text = text_or_skip(&mut rest)?;
                match name {
                    "event_type" => (event.stored, event.cleared) = (text == "stored", text == "cleared"),
                    "tenant_id" => event.tenant = text,
                    "medium" => event.medium = u8::from(text == "cpu") | u8::from(text == "disk") << 1,
                    "object_key" => event.key = text,
                    "group_id" => event.group = text,
                    _ => {}
                }
            }
        }
    }
    Ok((event, rest))
}

/// A text, or `""` for any other value that the publisher writes.
fn text_or_skip<'a>(rest: &mut &'a [u8]) -> Result<&'a str, String> {
    let mut peek = *rest;
    match read_marker(&mut peek).map_err(|_| "the payload ends in an event".to_owned())? {
        Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
            let (text, behind) = read_str_from_slice(*rest).map_err(|error| error.to_string())?;
            *rest = behind;
            return Ok(text);
        }
        Marker::Null | Marker::FixArray(0) => *rest = peek,
        _ => {
            let _: u64 = read_int(rest).map_err(|error| format!("an unexpected value: {error}"))?;
        }
    }
    Ok("")
}
