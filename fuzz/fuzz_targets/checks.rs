//! What must hold for every input, whichever target found it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use kv_events::decode::{Batch, ErrorClass, Event, EventError, OwnedBatch};
use kv_events::engine::{EncodeError, Form, encode_batch, encode_event};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: hands on to the system's allocator and counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Relaxed);
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(now, Relaxed);
        // SAFETY: the caller's promises are handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Runs `work` and checks that it took no more memory than 1 MiB and 8 times the input.
pub fn bounded<T>(input: usize, work: impl FnOnce() -> T) -> T {
    let before = NOW.load(Relaxed);
    PEAK.store(before, Relaxed);
    let result = work();
    let taken = PEAK.load(Relaxed) - before;
    assert!(taken <= (1 << 20) + 8 * input, "{taken} bytes of memory for {input} bytes of input");
    result
}

/// Runs `work` and checks that it took no memory at all.
pub fn unallocated<T>(work: impl FnOnce() -> T) -> T {
    let before = CALLS.load(Relaxed);
    let result = work();
    assert_eq!(CALLS.load(Relaxed), before, "the borrowed form allocated");
    result
}

/// Reads all of an event; a number so that nothing is optimised away.
pub fn read_all(event: &Event<'_>) -> u64 {
    let mut sum = event.event_id().unwrap_or(0) >> 1;
    sum ^= event.other().iter().map(|(name, _)| name.len() as u64).sum::<u64>();
    if let Some(envelope) = event.envelope() {
        sum ^= envelope.seq_hashes.iter().filter_map(|hash| hash.low64()).fold(0, u64::wrapping_add) >> 32;
    }
    let hashes = match event {
        Event::Stored(stored) => {
            if let Some(tokens) = stored.token_ids {
                assert_eq!(tokens.iter().count(), tokens.len());
                assert_eq!(tokens.iter().len(), tokens.len());
                sum += tokens.iter().map(u64::from).sum::<u64>();
            }
            if let Some(tokens) = stored.mixed_token_ids {
                assert_eq!(tokens.iter().count(), tokens.len());
            }
            for keys in stored.extra_keys.iter().flatten().flatten() {
                assert_eq!(keys.iter().count(), keys.len());
            }
            for info in stored.block_mm_infos.iter().flatten().flatten() {
                assert_eq!(info.objects.iter().count(), info.objects.len());
                sum += info.objects.iter().map(|object| object.offsets.iter().count() as u64).sum::<u64>();
            }
            stored.block_hashes
        }
        Event::Removed(removed) => removed.block_hashes,
        _ => return sum,
    };
    assert_eq!(hashes.iter().count(), hashes.len());
    sum
}

/// The owned form agrees, and what is encoded again decodes to the same.
pub fn round_trips(event: &Event<'_>) {
    let owned = event.into_owned();
    assert_eq!(owned.event(), *event, "the owned form differs");
    let json = serde_json::to_string(event).expect("an event has a JSON form");
    assert_eq!(json, serde_json::to_string(&owned).expect("an event has a JSON form"));
    let mut encoded = Vec::new();
    match encode_event(event, Form::Positional, &mut encoded) {
        Ok(()) => assert_eq!(Event::parse(&encoded), Ok(*event), "the positional form differs"),
        Err(EncodeError::NotPositional(_)) => assert!(encoded.is_empty()),
        Err(error) => panic!("a decoded event cannot be encoded: {error}"),
    }
}

/// All that must hold for a payload.
pub fn batch(payload: &[u8]) {
    let parsed = unallocated(|| {
        let parsed = Batch::parse(payload);
        if let Ok(batch) = &parsed {
            assert_eq!(batch.events().len(), batch.len());
            assert_eq!(batch.events().count(), batch.len());
            assert_eq!(batch.outlines().count(), batch.len());
            std::hint::black_box(batch.events().flatten().map(|event| read_all(&event)).fold(0, u64::wrapping_add));
        }
        parsed
    });
    bounded(payload.len(), || match (parsed, OwnedBatch::parse(payload.to_vec())) {
        (Ok(batch), Ok(owned)) => {
            assert!(batch.events().eq(owned.batch().events()), "the owned form differs");
            assert_eq!(batch.timestamp(), owned.batch().timestamp());
            assert_eq!(batch.data_parallel_rank(), owned.batch().data_parallel_rank());
        }
        (Err(error), Err(owned)) => assert_eq!(error, owned),
        (batch, owned) => panic!("{batch:?} borrowed and {owned:?} owned"),
    });
    let Ok(batch) = parsed else { return };
    for (event, outline) in batch.events().zip(batch.outlines()) {
        let Ok(event) = event else { continue };
        round_trips(&event);
        let outline = outline.expect("a good event has an outline");
        assert_eq!((outline.kind, outline.event_id), (event.kind(), event.event_id()));
    }
    again(&batch);
}

/// The good events, encoded again as a batch, decode to the same.
fn again(batch: &Batch<'_>) {
    let events: Vec<Event<'_>> = batch.events().flatten().collect();
    let mut encoded = Vec::new();
    match encode_batch(batch.timestamp(), &events, batch.data_parallel_rank(), Form::Map, &mut encoded) {
        Ok(()) => {}
        // What came in a bin may stand deeper outside of it.
        Err(EncodeError::TooDeep) => return,
        Err(error) => panic!("decoded events cannot be encoded: {error}"),
    }
    let decoded = Batch::parse(&encoded).expect("what was encoded decodes");
    assert_eq!(decoded.timestamp(), batch.timestamp());
    assert_eq!(decoded.data_parallel_rank(), batch.data_parallel_rank());
    assert!(decoded.events().eq(events.into_iter().map(Ok::<_, EventError>)), "encoded again, the batch differs");
}

/// All that must hold for a single event.
pub fn event(bytes: &[u8]) {
    let parsed = unallocated(|| {
        let parsed = Event::parse(bytes);
        if let Ok(event) = &parsed {
            std::hint::black_box(read_all(event));
        }
        parsed
    });
    match parsed {
        Ok(event) => {
            bounded(bytes.len(), || assert_eq!(event.into_owned().event(), event));
            round_trips(&event);
        }
        Err(error) => {
            assert!(error.offset() <= bytes.len());
            assert_eq!(
                error.class() == ErrorClass::Empty,
                bytes.is_empty() || error.offset() > 0 && is_empty_bin(bytes)
            );
        }
    }
}

/// Whether this is a bin of no bytes: an event that is empty inside its wrapping.
fn is_empty_bin(bytes: &[u8]) -> bool {
    matches!(bytes, [0xc4, 0] | [0xc5, 0, 0] | [0xc6, 0, 0, 0, 0])
}
