//! System calls of the sender are interrupted all the time, and nobody can tell.
#![cfg(all(feature = "zmq", target_os = "linux"))]

use crate::common::sub::{Sub, loopback};
use kv_events::{MediaSet, Object, Publisher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use test_support::alone;
use test_support::zmtp::{connect, shake_hands};

/// The sender's thread: the first of its name (ZeroMQ's own threads, which it starts, inherit it).
fn sender() -> Option<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let ids = tasks.filter_map(|task| task.unwrap().file_name().to_str()?.parse().ok());
    let name = |id: i32| std::fs::read_to_string(format!("/proc/self/task/{id}/comm")).unwrap_or_default();
    ids.filter(|id| name(*id).trim() == "kv-events").min()
}

/// Has SIGPROF interrupt calls and do nothing else.
fn let_signals_come() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: an all-zero `sigaction` is a valid one; without SA_RESTART, so that calls are interrupted.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler does nothing, so it is safe at any moment.
    assert_eq!(unsafe { libc::sigaction(libc::SIGPROF, &action, std::ptr::null_mut()) }, 0);
}

/// Interrupts a thread, which is there until then, until it is over.
fn interrupt(thread: i32, pause: Option<Duration>, over: &AtomicBool) {
    while !over.load(Ordering::Acquire) {
        // SAFETY: no memory; the thread is there.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGPROF) };
        pause.into_iter().for_each(std::thread::sleep);
    }
}

#[test]
fn a_sender_that_is_interrupted_sends_whole_messages_in_order() {
    if !alone!("a_sender_that_is_interrupted_sends_whole_messages_in_order") {
        return;
    }
    let_signals_come();
    let publisher = Publisher::start(loopback().send_hwm(0)).unwrap();
    let sub = Sub::of(&publisher);
    let sender = sender().expect("a thread of the sender's name");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| interrupt(sender, Some(Duration::from_micros(20)), &over));
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
    assert!(publisher.stop(Duration::from_secs(60)).closed);
    assert_eq!(publisher.status().failed_events, 0);
}

/// A call that a signal interrupts between two frames of what is asked or answered must not leave the other frames behind.
#[test]
fn a_sender_that_is_interrupted_goes_on_letting_peers_in() {
    if !alone!("a_sender_that_is_interrupted_goes_on_letting_peers_in") {
        return;
    }
    let_signals_come();
    let publisher = Publisher::start(loopback().allow_peers(["127.0.0.0/8"])).unwrap();
    let sender = sender().expect("a thread of the sender's name");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| interrupt(sender, None, &over));
        let endpoint = publisher.bound_endpoint().unwrap();
        let let_in = (0..100).all(|_| shake_hands(&mut connect(endpoint)).is_ok());
        over.store(true, Ordering::Release);
        assert!(let_in);
    });
}
