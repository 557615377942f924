//! Payloads made to hurt: nothing aborts, nothing allocates out of proportion, and good input allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use kv_events::decode::{Batch, ErrorClass, Event, OwnedBatch, Stored, Timestamp};
use kv_events::engine::{Form, encode_batch};

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// Counts what the current thread allocates.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: hands on to the system's allocator and counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        NOW.set(NOW.get().wrapping_add(layout.size()));
        PEAK.set(PEAK.get().max(NOW.get()));
        // SAFETY: the caller's promises are handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.set(NOW.get().wrapping_sub(layout.size()));
        // SAFETY: the caller's promises are handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// What `work` gives, how often it allocated, and the most it held at once.
fn measured<T>(work: impl FnOnce() -> T) -> (T, usize, usize) {
    NOW.set(0);
    PEAK.set(0);
    let calls = CALLS.get();
    let result = work();
    (result, CALLS.get() - calls, PEAK.get())
}

/// Reads everything there is, the owned forms too.
fn read_all(payload: &[u8]) -> Option<ErrorClass> {
    let owned = OwnedBatch::parse(payload.to_vec());
    let batch = match Batch::parse(payload) {
        Ok(batch) => batch,
        Err(error) => {
            assert_eq!(owned.expect_err("the owned form agrees"), error);
            return Some(error.class());
        }
    };
    let mut first = None;
    for event in batch.events() {
        match event {
            Ok(event) => assert_eq!(event.into_owned().event(), event),
            Err(error) => first = first.or(Some(error.class())),
        }
    }
    assert!(batch.outlines().count() == batch.len() && batch.events().eq(owned.expect("it agrees").batch().events()));
    first
}

/// Runs on a thread with little stack.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(256 * 1024).spawn(work).expect("a thread").join().expect("no panic");
}

const BOMB: usize = 512_000;

fn bomb(head: &[u8], marker: u8, tail: &[u8]) -> Vec<u8> {
    [head, &vec![marker; BOMB], tail].concat()
}

#[test]
fn depth_bombs_are_an_error_on_a_small_stack() {
    on_small_stack(|| {
        for marker in [0x91, 0x81] {
            assert_eq!(read_all(&bomb(b"", marker, b"\xc0")), Some(ErrorClass::DepthLimit));
            let unknown = bomb(b"\x92\x01\x91\x81\xa1x", marker, b"\xc0");
            assert_eq!(read_all(&unknown), Some(ErrorClass::DepthLimit));
            let extra_keys = b"\x92\x01\x91\x99\xabBlockStored\x90\xc0\x90\x01\xc0\xc0\xc0";
            assert_eq!(read_all(&bomb(extra_keys, marker, b"\xc0")), Some(ErrorClass::DepthLimit));
            assert_eq!(
                Event::parse(&bomb(b"", marker, b"")).map_err(|error| error.class()),
                Err(ErrorClass::DepthLimit)
            );
        }
        // In a bin the bomb is the one event's error.
        let mut wrapped = b"\x92\x01\x92\xc6".to_vec();
        wrapped.extend_from_slice(&(BOMB as u32).to_be_bytes());
        wrapped.extend_from_slice(&vec![0x91; BOMB]);
        wrapped.extend_from_slice(b"\x91\xb0AllBlocksCleared");
        let batch = Batch::parse(&wrapped).expect("the batch is sound");
        let outcomes: Vec<_> = batch.events().map(|event| event.map_err(|error| error.class())).collect();
        assert_eq!(outcomes[0], Err(ErrorClass::DepthLimit));
        assert!(outcomes[1].is_ok());
    });
}

/// 30 levels inside an event of a batch are within the limit, and are read, compared and written without trouble.
#[test]
fn the_deepest_that_is_allowed_is_read_on_a_small_stack() {
    on_small_stack(|| {
        // Batch, events, event and `extra_keys` are 4 of the 32.
        let mut payload = b"\x92\x01\x91\x99\xabBlockStored\x90\xc0\x90\x01\xc0\xc0\xc0\x91".to_vec();
        payload.extend_from_slice(&[0x91; 27]);
        payload.push(0x90);
        let batch = Batch::parse(&payload).expect("within the limit");
        let event = batch.events().next().expect("one").expect("good");
        assert_eq!(event.into_owned().event(), event);
        #[cfg(feature = "serde")]
        assert!(serde_json::to_string(&event).expect("a JSON form").contains(&"[".repeat(29)));
        payload.insert(payload.len() - 1, 0x91);
        assert_eq!(read_all(&payload), Some(ErrorClass::DepthLimit));
    });
}

/// Declared lengths reserve nothing.
#[test]
fn declared_lengths_reserve_nothing() {
    let ts = b"\xcb\x3f\xf0\0\0\0\0\0\0";
    let payloads = [
        b"\xdd\xff\xff\xff\xff".to_vec(),
        [&b"\x93"[..], ts, b"\xdd\x7f\xff\xff\xff"].concat(),
        [&b"\x93"[..], ts, b"\x91\x92\xacBlockRemoved\xdd\x3f\xff\xff\xff"].concat(),
        [&b"\x93"[..], ts, b"\x91\xdb\xff\xff\xff\xff"].concat(),
        b"\xdc\xff\xff".repeat(24_000),
    ];
    for payload in payloads {
        let (outcome, _, peak) = measured(|| read_all(&payload));
        assert!(matches!(outcome, Some(ErrorClass::Truncated | ErrorClass::DepthLimit)), "{outcome:?}");
        assert!(peak < (1 << 20) + 8 * payload.len(), "{peak} bytes for {}", payload.len());
    }
}

/// Payloads of which every byte makes something: lists of the shortest elements, thousands of empty or bad events.
#[test]
fn memory_is_in_proportion_to_the_payload() {
    const N: usize = 1 << 17;
    let list = |head: &[u8], element: &[u8], tail: &[u8]| {
        [head, b"\xdd", &(N as u32).to_be_bytes(), &element.repeat(N), tail].concat()
    };
    let payloads = [
        list(b"\x92\x01", b"\xc0", b""),
        list(b"\x92\x01", b"\x90", b""),
        list(b"\x92\x01", b"\x91\xa0", b""),
        list(b"\x92\x01\x91\x92\xacBlockRemoved", b"\x05", b""),
        list(b"\x92\x01\x91\x92\xacBlockRemoved", b"\xc4\x01x", b""),
        list(b"\x92\x01\x91\x95\xabBlockStored\x90\xc0", b"\x05", b"\x01"),
        list(b"\x92\x01\x91\x95\xabBlockStored\x90\xc0", b"\x92\x05\x05", b"\x01"),
        list(b"\x92\x01\x91\x99\xabBlockStored\x90\xc0\x90\x01\xc0\xc0\xc0", b"\xc0", b""),
        list(b"\x92\x01\x91\x99\xabBlockStored\x90\xc0\x90\x01\xc0\xc0\xc0", b"\x90", b""),
        list(b"\x92\x01\x91\x9a\xabBlockStored\x90\xc0\x90\x01\xc0\xc0\xc0\xc0", b"\xc0", b""),
        list(b"\x92\x01\x91\x9a\xabBlockStored\x90\xc0\x90\x01\xc0\xc0\xc0\xc0", b"\x91\x90", b""),
    ];
    for payload in payloads {
        let (_, _, peak) = measured(|| read_all(&payload));
        assert!(peak <= (1 << 20) + 8 * payload.len(), "{peak} bytes for {}", payload.len());
    }
}

/// The borrowed form of anything, good or bad, allocates nothing.
#[test]
fn borrowed_decoding_allocates_nothing() {
    let tokens: Vec<u32> = (0..512).map(|n| n * n).collect();
    let hashes: Vec<_> = (0..32).map(kv_events::decode::BlockHash::Int).collect();
    let mut event = Stored::new(&hashes);
    event.token_ids = Some((&tokens).into());
    event.block_size = Some(16);
    event.medium = Some("GPU".into());
    let mut payload = Vec::new();
    for form in [Form::Map, Form::Positional] {
        payload.clear();
        encode_batch(Timestamp::Int(1), &[Event::Stored(event); 3], Some(0), form, &mut payload).expect("it encodes");
        for end in [payload.len(), payload.len() - 1] {
            let (sum, calls, _) = measured(|| {
                let Ok(batch) = Batch::parse(&payload[..end]) else { return 0 };
                let mut sum = batch.outlines().flatten().map(|outline| outline.block_hashes.len() as u64).sum();
                for event in batch.events() {
                    let Ok(Event::Stored(stored)) = event else { continue };
                    sum += stored.token_ids.iter().flat_map(|tokens| tokens.iter()).map(u64::from).sum::<u64>();
                    sum += stored.block_hashes.iter().filter_map(|hash| hash.low64()).sum::<u64>();
                }
                sum
            });
            assert_eq!(calls, 0);
            assert_eq!(sum > 0, end == payload.len());
        }
    }
}
