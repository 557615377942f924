//! What the bench asks of Linux: signals to one thread, stopping one thread, starving one thread.

use std::io;
use std::time::Duration;

pub fn tid() -> u32 {
    // SAFETY: no arguments, no memory.
    unsafe { libc::gettid() as u32 }
}

pub fn threads() -> Vec<u32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect()
}

pub fn thread_name(tid: u32) -> String {
    std::fs::read_to_string(format!("/proc/self/task/{tid}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// Resident memory of a process, KiB; 0 if it is gone.
pub fn rss_kb(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4
}

/// SIGPROF interrupts system calls of this process and does nothing else.
pub fn interruptible() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: an all-zero `sigaction` is a valid one (no flags, so no SA_RESTART).
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler does nothing, so it is safe at any moment.
    assert_eq!(unsafe { libc::sigaction(libc::SIGPROF, &action, std::ptr::null_mut()) }, 0);
}

pub fn signal_process(pid: u32, signal: i32) {
    // SAFETY: no memory; the process is one the bench started.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}

pub fn signal_thread(pid: u32, tid: u32, signal: i32) {
    // SAFETY: no memory; the thread is one of a process the bench started.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal) };
}

/// Lets a thread run only when nothing else wants the core `core`, to which it is bound.
pub fn starve(tid: u32, core: usize) -> io::Result<()> {
    bind(tid, core)?;
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: `param` is valid and only read.
    checked(unsafe { libc::sched_setscheduler(tid as libc::pid_t, libc::SCHED_IDLE, &param) }.into())
}

/// Binds a thread (0: the calling one) to one core.
pub fn bind(tid: u32, core: usize) -> io::Result<()> {
    // SAFETY: an all-zero set is the empty one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `core` is far below the set's size.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: `set` is valid and only read.
    checked(unsafe { libc::sched_setaffinity(tid as libc::pid_t, size_of_val(&set), &set) }.into())
}

/// Memory that a process may write to, bytes.
pub fn limit_data(pid: u32, bytes: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: `limit` is valid and only read; no old limit is asked for.
    checked(unsafe { libc::prlimit(pid as libc::pid_t, libc::RLIMIT_DATA, &limit, std::ptr::null_mut()) }.into())
}

/// A network of this process's own, with nothing but a loopback device.
pub fn own_network() -> io::Result<()> {
    // SAFETY: no memory.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }.into())
}

/// One thread of another process, under this thread's control: it can be stopped wherever it is while the others run.
pub struct Traced(libc::pid_t);

impl Traced {
    pub fn seize(tid: u32) -> io::Result<Traced> {
        ptrace(libc::PTRACE_SEIZE, tid as libc::pid_t)?;
        Ok(Traced(tid as libc::pid_t))
    }

    pub fn stop_for(&self, time: Duration) -> io::Result<()> {
        ptrace(libc::PTRACE_INTERRUPT, self.0)?;
        let mut status = 0;
        // SAFETY: `status` is valid for the call to write to.
        checked(unsafe { libc::waitpid(self.0, &mut status, libc::__WALL) }.into())?;
        std::thread::sleep(time);
        ptrace(libc::PTRACE_CONT, self.0)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = ptrace(libc::PTRACE_INTERRUPT, self.0);
        let mut status = 0;
        // SAFETY: as above.
        unsafe { libc::waitpid(self.0, &mut status, libc::__WALL) };
        let _ = ptrace(libc::PTRACE_DETACH, self.0);
    }
}

fn ptrace(request: libc::c_uint, tid: libc::pid_t) -> io::Result<()> {
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: none of the requests used here reads or writes memory of this process.
    checked(unsafe { libc::ptrace(request, tid, none, none) })
}

fn checked(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
