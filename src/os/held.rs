//! Whether somebody listens at an `ipc` path.

use socket2::{Domain, SockAddr, Socket, Type};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether a live process holds the path, or the name in Linux's abstract namespace (`@name`): only then does it take a
/// connection, or would if it came to that. Never waits for one who lets others queue.
///
/// # Errors
///
/// What the system says where that cannot be found out.
pub(crate) fn is_held(path: &Path) -> io::Result<bool> {
    let address = match path.as_os_str().as_bytes().strip_prefix(b"@") {
        Some(_) if !cfg!(any(target_os = "linux", target_os = "android")) => return Ok(false),
        Some(name) => SockAddr::unix(OsStr::from_bytes(&[b"\0", name].concat()))?,
        None => SockAddr::unix(path)?,
    };
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address) {
        Ok(()) => Ok(true),
        Err(error) => match error.raw_os_error() {
            Some(libc::ECONNREFUSED | libc::ENOENT) => Ok(false),
            // Its queue is full, or it speaks datagrams.
            Some(libc::EAGAIN | libc::EINPROGRESS | libc::EPROTOTYPE) => Ok(true),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixDatagram, UnixListener};

    #[test]
    fn whoever_is_alive_holds_a_path_even_if_nobody_is_let_in() {
        let folder = std::env::temp_dir().join(format!("kv-events-held-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let is_held = |name: &str| is_held(&folder.join(name)).unwrap();
        assert!(!is_held("none"));

        let listener = UnixListener::bind(folder.join("live")).unwrap();
        assert!(is_held("live"));
        drop(listener);
        assert!(!is_held("live"), "left over by the dead");

        let hung = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        hung.bind(&SockAddr::unix(folder.join("hung")).unwrap()).unwrap();
        hung.listen(0).unwrap();
        // More often than it lets anybody queue: a call that waits would wait for ever.
        assert!((0..10).all(|_| is_held("hung")));

        let _datagrams = UnixDatagram::bind(folder.join("datagrams")).unwrap();
        assert!(is_held("datagrams"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn so_are_names_without_a_file() {
        use std::os::linux::net::SocketAddrExt;
        let name = format!("kv-events-held-{}", std::process::id());
        let path = format!("@{name}");
        assert!(!is_held(Path::new(&path)).unwrap());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name).unwrap();
        let _listener = UnixListener::bind_addr(&address).unwrap();
        assert!(is_held(Path::new(&path)).unwrap());
    }
}
