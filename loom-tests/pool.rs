//! The free list: I8. On the ported ring, so that what a buffer held has to be handed over with it.

use crate::support::{Model, ModelCall, RING_POOL, Seen, World};
use kv_events::internals::Pool;
use loom::sync::Arc;
use loom::thread;

/// Each thread takes a buffer or makes one, writes it, reads it back, and gives it back, so that every buffer can change
/// hands, `near` the thread or not; loom's cells notice two threads with one buffer, and a buffer that arrives before what
/// was done to it.
fn check(name: &'static str, bound: Option<usize>, rounds: u32, keeps: usize, near: &'static [bool; 2]) {
    Model { name, bound, floor: 100, must_see: &[Seen::Special] }.check(move |counts| {
        let world = World::new();
        let pool = Arc::new(RING_POOL.make(|| Pool::<ModelCall>::new(keeps, 1)));
        let users: Vec<_> = (1..)
            .zip(near)
            .map(|(user, near)| {
                let (world, pool) = (world.clone(), Arc::clone(&pool));
                thread::spawn(move || {
                    let mut reused = false;
                    for n in 0..rounds {
                        let taken = pool.take();
                        reused |= taken.as_ref().is_some_and(|buffer| buffer.name.0 != user);
                        let mut buffer = taken.unwrap_or_else(|| world.call((user, n), 1).watched());
                        buffer.rewrite((user, n));
                        if *near { pool.give_near(buffer) } else { pool.give(buffer) }
                    }
                    reused
                })
            })
            .collect();
        let reused = users.into_iter().map(|user| user.join().unwrap()).filter(|reused| *reused).count();
        counts.note(Seen::Special, reused > 0);
        let (made, freed) = (world.log().buffers, pool.freed());
        assert_eq!(u64::from(made), pool.misses(), "a buffer is made for every miss");
        let mut home: Vec<u32> = std::iter::from_fn(|| pool.take()).map(|buffer| buffer.buffer).collect();
        let near = near.iter().filter(|near| **near).count();
        assert!(home.len() <= keeps + near, "no more are kept than the bound says");
        assert_eq!(home.len() as u64 + freed, u64::from(made), "every buffer is home or was freed");
        home.sort_unstable();
        home.dedup();
        assert_eq!(home.len() as u64 + freed, u64::from(made), "no buffer is there twice");
    });
}

/// Two threads that swap two buffers.
#[test]
fn swaps() {
    check("pool_swaps", Some(3), 2, 2, &[false, false]);
}

/// Two buffers and room for one: the other is freed.
#[test]
fn overflows() {
    check("pool_overflows", Some(2), 2, 1, &[false, false]);
}

/// Two that share a lane, which no other part of the pool knows of.
#[test]
fn shares_a_lane() {
    check("pool_shares_a_lane", Some(3), 2, 1, &[true, true]);
}

/// One that gives back as a caller does that evicted, and one that does as the sender.
#[test]
fn near_and_far() {
    check("pool_near_and_far", Some(2), 2, 1, &[true, false]);
}
