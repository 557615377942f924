//! How the sender is scheduled.

/// Tells the scheduler that the calling thread is a batch worker, so that waking it does not preempt the caller that woke
/// it: a call into an idle publisher costs a tenth of what it does otherwise. Also lets short naps be short.
///
/// Linux only; elsewhere, and where it is not permitted, the thread runs as any other.
#[cfg(target_os = "linux")]
pub(crate) fn prefer_callers() {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread, and `param` is a valid `sched_param` that the call only reads.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &param) };
    // SAFETY: sets the calling thread's timer slack, in nanoseconds; no memory is involved.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong) };
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn prefer_callers() {}
