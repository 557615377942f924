//! The idle frames: I8. What a frame held has to be handed over with it; loom's cells notice two threads with one frame, and
//! a frame that arrives before what was done to it.

use crate::support::{Model, ModelCall, Seen};
use kv_events::internals::{Pool, RUN, Returns, lanes};
use loom::sync::Arc;
use loom::thread;

/// Which lane a thread has, if it has one, and whether it gives back as the sender does.
#[derive(Clone, Copy)]
struct User {
    lane: Option<usize>,
    far: bool,
}

const NEAR: User = User { lane: Some(0), far: false };
const OTHER: User = User { lane: Some(1), far: false };
const NONE: User = User { lane: None, far: false };
const SENDER: User = User { lane: None, far: true };

/// Each user takes so many frames at once, writes them, reads them back, and gives them back, `rounds` times, so that runs
/// and frames change hands.
fn check(name: &'static str, bound: usize, rounds: u32, at_once: usize, users: &'static [User]) {
    Model { name, bound: Some(bound), floor: 50, must_see: &[Seen::Special] }.check(move |counts| {
        let pool = Arc::new(Pool::<ModelCall>::new(32, 1).unwrap());
        let users: Vec<_> = (1..)
            .zip(users)
            .map(|(number, user)| {
                let pool = Arc::clone(&pool);
                thread::spawn(move || use_frames(&pool, *user, number, rounds, at_once))
            })
            .collect();
        let reused = users.into_iter().map(|user| user.join().unwrap()).filter(|reused| *reused).count();
        counts.note(Seen::Special, reused > 0);
        let mut pool = Arc::try_unwrap(pool).ok().expect("all threads have ended");
        let made = pool.made();
        assert_eq!(pool.idle(), made, "every frame is counted as idle");
        let mut home: Vec<u32> = pool.drain().iter().map(|held| held.number()).collect();
        home.sort_unstable();
        home.dedup();
        assert_eq!(home.len() as u64, made, "every frame is home, and once");
    });
}

/// Whether a frame was somebody else's before.
fn use_frames(pool: &Pool<ModelCall>, user: User, number: u8, rounds: u32, at_once: usize) -> bool {
    if let Some(lane) = user.lane {
        lanes::set_lane(lane);
    }
    let (mut returns, mut reused) = (Returns::default(), false);
    for round in 0..rounds {
        let mut held: Vec<_> = (0..at_once).map(|_| pool.take(1).expect("there is room")).collect();
        for held in &mut held {
            let frame = pool.frames().get_mut(held);
            reused |= ![0, number].contains(&frame.name.0);
            frame.name = (number, round);
        }
        for held in held {
            assert_eq!(pool.frames().get(&held).name, (number, round), "nobody else has it");
            if user.far { pool.give_far(held, &mut returns) } else { pool.give(held, false) }
        }
    }
    pool.give_rest(&mut returns);
    reused
}

/// Two threads with lanes that are overfull, so that runs go from one to the other.
#[test]
fn lanes_swap_runs() {
    check("pool_lanes_swap_runs", 2, 2, 2 * RUN + 1, &[NEAR, OTHER]);
}

/// A caller, and one that gives back as the sender does.
#[test]
fn caller_and_sender() {
    check("pool_caller_and_sender", 2, 2, RUN, &[NEAR, SENDER]);
}

/// Threads without a lane share single frames.
#[test]
fn without_lanes() {
    check("pool_without_lanes", 2, 2, 1, &[NONE, NONE]);
}

/// One with a lane and one without.
#[test]
fn with_and_without_a_lane() {
    check("pool_with_and_without_a_lane", 1, 2, 1, &[NEAR, SENDER, NONE]);
}

/// A frame that is popped, used and pushed again while another thread is about to pop it: the stack's count tells.
#[test]
fn comes_back_while_another_pops() {
    check("pool_comes_back_while_another_pops", 2, 2, 2, &[NONE, NONE]);
}
