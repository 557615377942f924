//! Encodes engine events, in every form that [`decode`](crate::decode) reads.
//!
//! For engines written in Rust, and for tests that need what an engine sends. The types are the decoder's: build an
//! [`Event`](crate::decode::Event), or hand on one that was decoded. Each hash is then written as it came: an integer of either sign, or bytes.
//! The typed decoders of vLLM and SGLang read what is written, as far as their events can say it.
//!
//! ```
//! use kv_events::decode::{Batch, BlockHash, Event, Stored, Timestamp};
//! use kv_events::engine::{Form, encode_batch};
//!
//! let hashes = [BlockHash::Int(1), BlockHash::Bytes(b"\x01\x02\x03")];
//! let mut stored = Stored::new(&hashes);
//! stored.token_ids = Some((&[11, 12, 13, 14]).into());
//! stored.block_size = Some(2);
//! stored.medium = Some("GPU".into());
//!
//! let mut payload = Vec::new();
//! let events = [Event::Stored(stored)];
//! encode_batch(Timestamp::Float(1.5), &events, Some(0), Form::Positional, &mut payload)?;
//! assert_eq!(Batch::parse(&payload)?.events().next(), Some(Ok(events[0])));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod encode;
mod error;
mod map;
mod owned;
mod positional;
mod writer;

pub use encode::{Form, encode_batch, encode_event};
pub use error::EncodeError;
pub use owned::OwnedEvent;
