//! The free list: I8. On the ported ring, so that what a buffer held has to be handed over with it.

use crate::support::{Model, ModelCall, RING_POOL, Seen, World};
use kv_events::internals::Pool;
use loom::sync::Arc;
use loom::thread;

/// Each thread takes a buffer or makes one, writes it, reads it back, and gives it back, so that every buffer can change
/// hands; loom's cells notice two threads with one buffer, and a buffer that arrives before what was done to it.
fn check(name: &'static str, bound: Option<usize>, threads: u8, rounds: u32, keeps: usize) {
    Model { name, bound, floor: 100, must_see: &[Seen::Special] }.check(move |counts| {
        let world = World::new();
        let pool = Arc::new(RING_POOL.make(|| Pool::<ModelCall>::new(keeps, 1)));
        let users: Vec<_> = (1..=threads)
            .map(|user| {
                let (world, pool) = (world.clone(), Arc::clone(&pool));
                thread::spawn(move || {
                    let mut reused = false;
                    for n in 0..rounds {
                        let taken = pool.take();
                        reused |= taken.as_ref().is_some_and(|buffer| buffer.name.0 != user);
                        let mut buffer = taken.unwrap_or_else(|| world.call((user, n), 1).watched());
                        buffer.rewrite((user, n));
                        pool.give(buffer);
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
        assert!(home.len() <= keeps, "no more are kept than the bound says");
        assert_eq!(home.len() as u64 + freed, u64::from(made), "every buffer is home or was freed");
        home.sort_unstable();
        home.dedup();
        assert_eq!(home.len() as u64 + freed, u64::from(made), "no buffer is there twice");
    });
}

/// Two threads that swap two buffers.
#[test]
fn swaps() {
    check("pool_swaps", Some(3), 2, 2, 2);
}

/// Two buffers and room for one: the other is freed.
#[test]
fn overflows() {
    check("pool_overflows", Some(2), 2, 2, 1);
}
