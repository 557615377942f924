//! The decoder: what is read, what is refused and why, and what the encoder writes for engines.

mod engine_events;
mod engine_readers;
mod engine_round_trip;
mod hostile;
mod odd;
mod vectors;
mod wire;
