//! TCP keepalive, set on the sockets themselves: the libzmq that `zmq-sys` builds takes its own options for it and does
//! nothing.

use std::io;
use std::mem::ManuallyDrop;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{FromRawFd, RawFd};
use std::time::Duration;

/// Has the system end the connections of a socket whose other side has not been heard of for `dead_after`: neither an answer
/// to what was sent (Linux: nor room for more of it), nor to a question that the system asks by itself when nothing is sent.
/// What a listener accepts later has its settings.
///
/// # Errors
///
/// What the system says; some of the settings may be made then.
pub(crate) fn keep_alive(socket: RawFd, dead_after: Duration) -> io::Result<()> {
    // A third of the time in silence, then a question each sixth, four of them unanswered.
    let seconds = |part: u64| (dead_after.as_secs() / part).clamp(1, 32_767) as libc::c_int;
    set(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let millis = libc::c_int::try_from(dead_after.as_millis()).unwrap_or(libc::c_int::MAX);
        set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, seconds(3))?;
        set(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, millis)?;
    }
    #[cfg(target_vendor = "apple")]
    set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPALIVE, seconds(3))?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, seconds(6))?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 4)
}

fn set(socket: RawFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` is valid for its length and only read.
    let set = unsafe { libc::setsockopt(socket, level, name, (&raw const value).cast(), len) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The descriptor that listens at `ip` and `port`, which libzmq does not tell. There is one at most: the system binds no two.
pub(crate) fn listener(ip: IpAddr, port: u16) -> Option<RawFd> {
    let names = std::fs::read_dir("/dev/fd").ok()?;
    let mut numbers = names.filter_map(|name| name.ok()?.file_name().to_str()?.parse::<RawFd>().ok());
    let is_it = |bound: SocketAddr| bound.ip() == ip && bound.port() == port;
    numbers.find(|number| is_listening(*number) && address(*number).is_some_and(is_it))
}

fn is_listening(socket: RawFd) -> bool {
    let mut value: libc::c_int = 0;
    let mut len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` is valid for the call to write `len` bytes to; a number that is no socket's is an error.
    let got = unsafe {
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_ACCEPTCONN, (&raw mut value).cast(), &raw mut len)
    };
    got == 0 && value != 0
}

fn address(socket: RawFd) -> Option<SocketAddr> {
    // SAFETY: only asked for its address and never closed here. Should its owner close it at this moment, the answer is an
    // error, or the address of another socket, which is compared and forgotten.
    let socket = ManuallyDrop::new(unsafe { TcpListener::from_raw_fd(socket) });
    socket.local_addr().ok()
}
