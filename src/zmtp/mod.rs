//! What both sides of a ZMTP 3.0 connection say: greeting, handshake, heads of frames. With the NULL mechanism only.

mod broken;

pub use broken::{Broken, MAX_FRAMES};

pub(crate) const MORE: u8 = 1;
pub(crate) const LONG: u8 = 2;
pub(crate) const COMMAND: u8 = 4;

/// What we say first.
pub(crate) fn greeting() -> [u8; 64] {
    let mut greeting = [0; 64];
    greeting[0] = 0xff;
    greeting[9] = 0x7f;
    greeting[10] = 3;
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

/// The handshake of a socket of this type: the command that follows the greetings.
pub(crate) fn ready(socket_type: &[u8; 3]) -> [u8; 27] {
    let mut ready = *b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB";
    ready[24..].copy_from_slice(socket_type);
    ready
}

/// The head of a frame without flags.
pub(crate) fn head(size: u64) -> Vec<u8> {
    match u8::try_from(size) {
        Ok(size) => vec![0, size],
        Err(_) => [&[LONG][..], &size.to_be_bytes()].concat(),
    }
}

/// Whether the greeting is complete.
pub(crate) fn judge_greeting(heard: &[u8]) -> Result<bool, Broken> {
    if heard.starts_with(b"HTTP") {
        return Err(Broken::NotZeroMq("an HTTP server"));
    }
    if heard.first().is_some_and(|&first| first != 0xff && first != b'H')
        || (heard.first() == Some(&b'H') && heard.len() >= 4)
        || heard.get(9).is_some_and(|last| last & 1 == 0)
    {
        return Err(Broken::NotZeroMq("something"));
    }
    if heard.get(10).is_some_and(|&version| version < 3) {
        return Err(Broken::Older);
    }
    let Some(mechanism) = heard.get(12..32) else { return Ok(false) };
    let name = mechanism.split(|&byte| byte == 0).next().unwrap_or_default();
    if name != b"NULL" {
        return Err(Broken::Mechanism(printable(name)));
    }
    Ok(heard.len() == 64)
}

/// The value of the property `Socket-Type`.
pub(crate) fn socket_type(mut properties: &[u8]) -> Option<&[u8]> {
    loop {
        let (&len, rest) = properties.split_first()?;
        let (name, rest) = rest.split_at_checked(len.into())?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*len).try_into().ok()?)?;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            return Some(value);
        }
        properties = rest;
    }
}

/// Words of a peer, short and harmless.
pub(crate) fn printable(text: &[u8]) -> String {
    text[..text.len().min(64)].escape_ascii().to_string()
}
