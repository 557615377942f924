//! How the sender is scheduled.

/// Tells the scheduler that the calling thread is a batch worker, so that waking it does not preempt the caller that woke
/// it: a call into an idle publisher costs a tenth of what it does otherwise. Also lets short naps be short.
///
/// Only beside threads of the usual policy: where one of the process's runs real-time, a thread that the scheduler puts last
/// is the one that such a caller could have to wait for; and one that was told to run when nothing else does is left there.
///
/// Linux only; elsewhere, and where it is not permitted, the thread runs as any other.
#[cfg(target_os = "linux")]
pub(crate) fn use_batch_scheduling() {
    // SAFETY: sets the calling thread's timer slack, in nanoseconds; no memory is involved.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong) };
    if policy(0) == libc::SCHED_OTHER && !runs_real_time() {
        let param = libc::sched_param { sched_priority: 0 };
        // SAFETY: 0 is the calling thread, and `param` is a valid `sched_param` that the call only reads.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &param) };
    }
}

/// The scheduling policy of a thread (0: the calling one); -1 if there is none.
#[cfg(target_os = "linux")]
fn policy(thread: libc::pid_t) -> libc::c_int {
    // SAFETY: no memory is involved.
    let policy = unsafe { libc::sched_getscheduler(thread) };
    if policy < 0 { policy } else { policy & !libc::SCHED_RESET_ON_FORK }
}

/// Whether any thread of the process has a real-time policy. Where that cannot be found out it is taken for one that has.
#[cfg(target_os = "linux")]
fn runs_real_time() -> bool {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return true };
    let ids = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse().ok());
    ids.map(policy).any(|policy| [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE].contains(&policy))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn use_batch_scheduling() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn run_as(policy: libc::c_int, priority: libc::c_int) -> bool {
        let param = libc::sched_param { sched_priority: priority };
        // SAFETY: 0 is the calling thread, and `param` is a valid `sched_param` that the call only reads.
        unsafe { libc::sched_setscheduler(0, policy, &param) == 0 }
    }

    /// The policy of a thread that was hinted at, with one beside it that runs as it is told.
    fn hinted(own: libc::c_int, beside: libc::c_int) -> Option<libc::c_int> {
        let priority = |policy| libc::c_int::from([libc::SCHED_FIFO, libc::SCHED_RR].contains(&policy));
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let other = scope.spawn(move || {
                let permitted = run_as(beside, priority(beside));
                let hinted = scope.spawn(move || {
                    let permitted = permitted && run_as(own, priority(own));
                    use_batch_scheduling();
                    permitted.then(|| policy(0))
                });
                tell.send(hinted.join().unwrap()).unwrap();
            });
            other.join().unwrap();
        });
        told.recv().unwrap()
    }

    #[test]
    fn the_hint_is_given_to_a_usual_thread_among_usual_ones_alone() {
        // One after the other: what a thread of one case runs as counts for the others.
        assert_eq!(hinted(libc::SCHED_IDLE, libc::SCHED_OTHER), Some(libc::SCHED_IDLE));
        assert_eq!(hinted(libc::SCHED_OTHER, libc::SCHED_OTHER), Some(libc::SCHED_BATCH));
        for real_time in [libc::SCHED_FIFO, libc::SCHED_RR] {
            match hinted(libc::SCHED_OTHER, real_time) {
                Some(policy) => assert_eq!(policy, libc::SCHED_OTHER, "beside one of {real_time}"),
                None => eprintln!("skipped: nobody may run real-time here"),
            }
            if let Some(policy) = hinted(real_time, libc::SCHED_OTHER) {
                assert_eq!(policy, real_time);
            }
        }
    }
}
