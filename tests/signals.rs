//! System calls of the sender are interrupted all the time, and nobody can tell.
#![cfg(all(feature = "zmq", target_os = "linux"))]

mod common;

use common::sub::{Sub, loopback};
use kv_events::{MediaSet, Object, Publisher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The sender's thread: the first of its name (ZeroMQ's own threads, which it starts, inherit it).
fn sender() -> Option<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let ids = tasks.filter_map(|task| task.unwrap().file_name().to_str()?.parse().ok());
    let name = |id: i32| std::fs::read_to_string(format!("/proc/self/task/{id}/comm")).unwrap_or_default();
    ids.filter(|id| name(*id).trim() == "kv-events").min()
}

#[test]
fn a_sender_that_is_interrupted_sends_whole_messages_in_order() {
    // PC-41
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: an all-zero `sigaction` is a valid one; without SA_RESTART, so that calls are interrupted.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler does nothing, so it is safe at any moment.
    assert_eq!(unsafe { libc::sigaction(libc::SIGPROF, &action, std::ptr::null_mut()) }, 0);

    let publisher = Publisher::start(loopback().send_hwm(0)).unwrap();
    let sub = Sub::of(&publisher);
    let sender = sender().expect("a thread of the sender's name");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                // SAFETY: no memory; the thread lives as long as the publisher.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), sender, libc::SIGPROF) };
                std::thread::sleep(Duration::from_micros(20));
            }
        });
        scope.spawn(|| {
            for n in 0..30_000 {
                publisher.committed(&Object::new("t", &n.to_string()), MediaSet::CPU);
                if n % 100 == 0 {
                    // Lets the sender park now and then.
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        });
        // `Sub` takes nothing but three frames and whole payloads.
        let messages = sub.events(30_000);
        assert!(messages.windows(2).all(|pair| pair[1].sequence == pair[0].sequence + 1));
        let keys = messages.iter().flat_map(|message| &message.events).map(|event| event.text("object_key").to_owned());
        assert!(keys.eq((0..30_000).map(|n| n.to_string())));
        over.store(true, Ordering::Release);
    });
    assert!(publisher.stop(Duration::from_secs(20)).closed);
    assert_eq!(publisher.status().failed_events, 0);
}
