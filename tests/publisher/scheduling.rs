//! What a scheduler may do to one thread holds up no other: callers that are stopped inside a call, and callers that keep the
//! sender from its processor.
#![cfg(all(feature = "zmq", target_os = "linux"))]

use kv_events::transport::{Message, SendError, Transport};
use kv_events::{Config, MediaSet, Object, Publisher, WaitStrategy};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use test_support::alone;

/// Takes every message.
struct Nowhere(Vec<u8>);

impl Transport for Nowhere {
    fn send(&mut self, message: &Message<'_>) -> Result<(), SendError> {
        self.0.resize(message.payload_len(), 0);
        message.write_payload(&mut self.0);
        Ok(())
    }
}

fn start(capacity: usize) -> Publisher {
    let config = Config::new("nowhere", "b").queue_capacity(capacity).wait_strategy(WaitStrategy::Park);
    Publisher::start_with(config, Nowhere(Vec::new())).unwrap()
}

/// Accepted = published + evicted + abandoned, and the sequence rule.
fn identities_hold(publisher: &Publisher, accepted: u64) {
    assert!(publisher.stop(Duration::from_secs(60)).closed);
    let status = publisher.status();
    assert_eq!(accepted, status.published_events + status.evicted_events + status.abandoned_events, "{status:?}");
    assert_eq!(status.last_sequence, status.published_batches + status.evicted_events, "{status:?}");
}

/// The end of a pipe that the handler reads from, and how many handlers wait there.
static GATE: AtomicI32 = AtomicI32::new(-1);
static WAITING: AtomicU64 = AtomicU64::new(0);

/// Stops the thread that the signal was sent to, wherever it was, until a byte comes.
extern "C" fn stop_here(_: libc::c_int) {
    WAITING.fetch_add(1, Ordering::SeqCst);
    let mut byte = 0_u8;
    // SAFETY: reads one byte into a place for one; `read` may be called in a handler.
    while unsafe { libc::read(GATE.load(Ordering::SeqCst), (&raw mut byte).cast(), 1) } != 1 {}
    WAITING.fetch_sub(1, Ordering::SeqCst);
}

fn wait_for(what: &str, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited 60 s for {what}");
        thread::yield_now();
    }
}

/// A caller is stopped somewhere inside its calls, again and again; meanwhile the others make theirs, and the sender sends.
#[test]
fn a_caller_that_is_stopped_in_a_call_holds_up_nobody() {
    if !alone!("a_caller_that_is_stopped_in_a_call_holds_up_nobody") {
        return;
    }
    let mut pipe = [0; 2];
    // SAFETY: `pipe` has room for two descriptors; the handler is async-signal-safe, and `action` outlives the call.
    unsafe {
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = stop_here as extern "C" fn(libc::c_int) as usize;
        assert_eq!(libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()), 0);
    }
    GATE.store(pipe[0], Ordering::SeqCst);
    for capacity in [2, 3, 7, 16, 64, 4096] {
        let publisher = Arc::new(start(capacity));
        let over = Arc::new(AtomicBool::new(false));
        let calls: Arc<[AtomicU64; 3]> = Arc::default();
        let callers: Vec<_> = (0..3)
            .map(|caller| {
                let (publisher, over, calls) = (Arc::clone(&publisher), Arc::clone(&over), Arc::clone(&calls));
                thread::spawn(move || {
                    let object = Object::new("t", "key");
                    let mut accepted = 0;
                    while !over.load(Ordering::Relaxed) {
                        let media = if accepted % 3 == 0 { MediaSet::BOTH } else { MediaSet::CPU };
                        assert!(publisher.committed(&object, media).is_accepted());
                        accepted += media.len() as u64;
                        calls[caller].fetch_add(1, Ordering::Relaxed);
                    }
                    accepted
                })
            })
            .collect();
        // Every frame there can be is there, so that nobody is in the allocator.
        wait_for("calls", || calls.iter().all(|calls| calls.load(Ordering::Relaxed) > 10_000));
        for _ in 0..100 {
            let victim = std::os::unix::thread::JoinHandleExt::as_pthread_t(&callers[0]);
            // SAFETY: the thread has not been joined.
            assert_eq!(unsafe { libc::pthread_kill(victim, libc::SIGUSR1) }, 0);
            wait_for("the signal", || WAITING.load(Ordering::SeqCst) == 1);
            let before = [1, 2].map(|caller| calls[caller].load(Ordering::Relaxed));
            let published = publisher.status().published_events;
            wait_for("calls of the others", || {
                (1..3).all(|caller| calls[caller].load(Ordering::Relaxed) > before[caller - 1] + 100)
            });
            if capacity > 4 {
                // In a smaller one what the stopped caller claimed may be all there is room for.
                wait_for("the sender", || publisher.status().published_events > published);
            }
            // SAFETY: writes one byte from a place of one.
            assert_eq!(unsafe { libc::write(pipe[1], b"x".as_ptr().cast(), 1) }, 1);
            wait_for("the caller to go on", || WAITING.load(Ordering::SeqCst) == 0);
        }
        over.store(true, Ordering::Relaxed);
        let accepted = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
        identities_hold(&publisher, accepted);
    }
}

/// A caller that the scheduler prefers to the sender (`SCHED_FIFO`) shares its one processor: no call waits for the sender to
/// go on, which it could not. Waiting would be spinning, which shows as processor time, or sleeping, which shows as a switch.
#[test]
fn a_real_time_caller_on_the_senders_processor_waits_for_nothing() {
    if !alone!("a_real_time_caller_on_the_senders_processor_waits_for_nothing") {
        return;
    }
    // SAFETY: all of these only read what they are given, or fill it in.
    let permitted = unsafe {
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        let mut mine: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&mine), &mut mine), 0);
        let processor = (0..libc::CPU_SETSIZE as usize).rfind(|&n| libc::CPU_ISSET(n, &mine)).unwrap();
        libc::CPU_SET(processor, &mut one);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&one), &one), 0);
        let param = libc::sched_param { sched_priority: 10 };
        let permitted = libc::sched_setscheduler(0, libc::SCHED_FIFO, &param) == 0;
        let param = libc::sched_param { sched_priority: 0 };
        assert_eq!(libc::sched_setscheduler(0, libc::SCHED_OTHER, &param), 0);
        permitted
    };
    if !permitted {
        println!("measured: skipped: this machine permits no SCHED_FIFO");
        return;
    }
    for capacity in [64, 65_536] {
        let publisher = start(capacity);
        let object = Object::new("t", "key");
        // The pool grows, before it counts.
        (0..200_000).for_each(|_| _ = publisher.committed(&object, MediaSet::CPU));
        let (calls, worst) = thread::scope(|scope| {
            let caller = scope.spawn(|| {
                // SAFETY: as above.
                unsafe {
                    let param = libc::sched_param { sched_priority: 10 };
                    assert_eq!(libc::sched_setscheduler(0, libc::SCHED_FIFO, &param), 0);
                }
                call_in_bursts(&publisher, &object)
            });
            caller.join().unwrap()
        });
        println!("measured: capacity {capacity}, {calls} calls, at most {worst:?} of processor time in one");
        identities_hold(&publisher, 200_000 + calls);
    }
}

/// Bursts of calls with pauses of many lengths, so that they meet the sender wherever it is; the calls, and the most
/// processor time that one took.
fn call_in_bursts(publisher: &Publisher, object: &Object<'_>) -> (u64, Duration) {
    let (begun, mut calls, mut worst, mut pause) = (Instant::now(), 0, Duration::ZERO, 20);
    let (mut bursts, mut slept) = (0, 0);
    while begun.elapsed() < Duration::from_secs(3) {
        let sleeps = voluntary_switches();
        for _ in 0..130 {
            let before = processor_time();
            assert!(publisher.committed(object, MediaSet::CPU).is_accepted());
            worst = worst.max(processor_time() - before);
            calls += 1;
        }
        bursts += 1;
        slept += u64::from(voluntary_switches() != sleeps);
        // A spinning caller would go on until the kernel throttles it, after 950 ms.
        assert!(worst < Duration::from_millis(100), "a call took {worst:?} of processor time");
        pause = 5 + (pause * 31 + 7) % 83;
        thread::sleep(Duration::from_micros(pause));
    }
    // Not none: a page that has to be fetched is a switch, too.
    assert!(slept <= 5 + bursts / 10, "calls slept in {slept} of {bursts} bursts");
    (calls, worst)
}

fn processor_time() -> Duration {
    // SAFETY: fills in a structure of numbers.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        assert_eq!(libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time), 0);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
}

fn voluntary_switches() -> i64 {
    // SAFETY: fills in a structure of numbers.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, &mut usage), 0);
        usage.ru_nvcsw
    }
}
