//! Single values that producers spell in more ways than one.

use std::fmt;

use super::cursor::{Cursor, Head, Read};
use super::error::ErrorClass;
use crate::media::Medium;

/// A time as it came, with its kind.
///
/// No field says the unit. By habit an integer is milliseconds since the epoch (stores) and a float is seconds (engines),
/// but one engine has sent a monotonic clock, so nothing here converts. Nil, NaN and the infinities are not timestamps:
/// they are a [`WrongType`](super::ErrorClass::WrongType).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timestamp {
    /// An integer.
    Int(i128),
    /// A finite float.
    Float(f64),
}

impl Timestamp {
    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Read<Self> {
        match cursor.head()? {
            Head::Uint(value) => Ok(Timestamp::Int(i128::from(value))),
            Head::Negative(value) => Ok(Timestamp::Int(i128::from(value))),
            Head::Float(value) if value.is_finite() => Ok(Timestamp::Float(value)),
            _ => Err(ErrorClass::WrongType),
        }
    }
}

/// Times of one kind compare by value; an integer and a float do not, their units may differ.
impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Timestamp::Int(a), Timestamp::Int(b)) => Some(a.cmp(b)),
            (Timestamp::Float(a), Timestamp::Float(b)) => a.partial_cmp(b),
            _ => None,
        }
    }
}

/// A float of 1e16 and more, or closer to 0 than 1e-6, is no time that anybody sends, and stands in scientific form: `1e308`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Timestamp::Int(value) => value.fmt(f),
            Timestamp::Float(value) if *value == 0.0 || (1e-6..1e16).contains(&value.abs()) => value.fmt(f),
            Timestamp::Float(value) => fmt::LowerExp::fmt(value, f),
        }
    }
}

/// The medium a producer named: `cpu`, `GPU`, `DISK`, `SHARED_STORAGE` ...
///
/// Kept as it came, an empty text too; compared without regard to ASCII case, since producers do not agree on it.
#[derive(Clone, Copy, Debug)]
pub struct MediumName<'a>(&'a str);

impl<'a> MediumName<'a> {
    /// A medium by any name.
    #[must_use]
    pub const fn new(name: &'a str) -> Self {
        MediumName(name)
    }

    /// The name as it came.
    #[must_use]
    pub const fn as_str(&self) -> &'a str {
        self.0
    }

    /// Whether it is a name that engines give to a medium.
    pub(crate) fn is_usual(&self) -> bool {
        const USUAL: [&str; 13] = [
            "gpu",
            "cpu",
            "cpu_pinned",
            "disk",
            "storage",
            "shared_storage",
            "external",
            "remote",
            "hbm",
            "dram",
            "ssd",
            "nvme",
            "host",
        ];
        USUAL.into_iter().any(|usual| *self == *usual)
    }

    /// The medium of this crate that is meant, if it is one: `cpu` or `disk` in any case.
    #[must_use]
    pub fn known(&self) -> Option<Medium> {
        Medium::ALL.into_iter().find(|medium| *self == *medium.as_str())
    }
}

impl<'a> From<&'a str> for MediumName<'a> {
    fn from(name: &'a str) -> Self {
        MediumName(name)
    }
}

impl From<Medium> for MediumName<'_> {
    fn from(medium: Medium) -> Self {
        MediumName(medium.as_str())
    }
}

impl PartialEq<str> for MediumName<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }
}

impl PartialEq<&str> for MediumName<'_> {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl<'b> PartialEq<MediumName<'b>> for MediumName<'_> {
    fn eq(&self, other: &MediumName<'b>) -> bool {
        *self == *other.0
    }
}

impl Eq for MediumName<'_> {}

impl std::hash::Hash for MediumName<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.bytes().for_each(|byte| state.write_u8(byte.to_ascii_lowercase()));
        state.write_u8(0xff);
    }
}

impl fmt::Display for MediumName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! cache_kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What kind of cache a group of blocks belongs to (`kv_cache_spec_kind`).
        ///
        /// A kind that this crate does not know is neither an error nor taken for another: it stays text, and what to
        /// do about it is the reader's choice.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum CacheKind<'a> {
            $($(#[$doc])* $name,)*
            /// Any other text.
            Unknown(&'a str),
        }

        impl<'a> CacheKind<'a> {
            /// The kind that a text on the wire means.
            pub fn from_wire(text: &'a str) -> Self {
                match text {
                    $($text => CacheKind::$name,)*
                    _ => CacheKind::Unknown(text),
                }
            }

            /// The text on the wire.
            pub const fn as_str(&self) -> &'a str {
                match self {
                    $(CacheKind::$name => $text,)*
                    CacheKind::Unknown(text) => text,
                }
            }
        }
    };
}

cache_kinds! {
    /// Every token attends to all before it.
    FullAttention = "full_attention",
    /// Multi-head latent attention.
    MlaAttention = "mla_attention",
    /// Attention to the last tokens only.
    SlidingWindow = "sliding_window",
    /// Sliding window over latent attention.
    SlidingWindowMla = "sliding_window_mla",
    /// State of a state-space model.
    Mamba = "mamba",
    /// Attention within chunks.
    ChunkedLocalAttention = "chunked_local_attention",
    /// Full attention with sinks.
    SinkFullAttention = "sink_full_attention",
    /// Encoder layers.
    EncoderOnlyAttention = "encoder_only_attention",
    /// Attention of a decoder to an encoder.
    CrossAttention = "cross_attention",
}

impl fmt::Display for CacheKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_short_whatever_it_is() {
        for (value, text) in [
            (1_790_000_000.123, "1790000000.123"),
            (0.0, "0"),
            (-1.5, "-1.5"),
            (0.000_001, "0.000001"),
            (9_999_999_999_999_998.0, "9999999999999998"),
            (1e16, "1e16"),
            (1e308, "1e308"),
            (-f64::MAX, "-1.7976931348623157e308"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        ] {
            assert_eq!(Timestamp::Float(value).to_string(), text);
        }
        assert_eq!(format!("{:.3}", Timestamp::Float(1.5)), "1.500");
        assert_eq!(Timestamp::Int(i128::from(u64::MAX)).to_string(), "18446744073709551615");
    }
}
