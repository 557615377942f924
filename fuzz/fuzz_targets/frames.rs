//! Whole messages of any number of frames.
#![no_main]

mod checks;

use kv_events::decode::{FrameError, Frames};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let frames = split(input);
    match Frames::parse(&frames) {
        Ok(message) => {
            assert_eq!((frames.len(), frames[1].len()), (3, 8));
            assert_eq!(message.topic, frames[0]);
            assert_eq!(message.sequence.to_be_bytes(), frames[1]);
            checks::batch(message.payload);
        }
        Err(FrameError::Count(count)) => assert!(count == frames.len() && count != 3),
        Err(FrameError::SequenceLength(len)) => assert!(len == frames[1].len() && len != 8),
        Err(error) => panic!("{error}"),
    }
});

/// Frames out of one input: the first byte counts them, each begins with its length but for the last, which is the rest.
fn split(input: &[u8]) -> Vec<&[u8]> {
    let Some((&count, mut rest)) = input.split_first() else { return Vec::new() };
    let count = usize::from(count % 6);
    let mut frames = Vec::with_capacity(count);
    for frame in 1..=count {
        let len = match rest.split_first() {
            Some((&len, behind)) if frame < count => {
                rest = behind;
                usize::from(len).min(rest.len())
            }
            _ => rest.len(),
        };
        let (head, tail) = rest.split_at(len);
        frames.push(head);
        rest = tail;
    }
    frames
}
