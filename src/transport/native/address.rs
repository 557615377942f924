//! Where it listens.

use crate::error::EndpointError;
use socket2::{Domain, SockAddr, Socket, Type};
use std::ffi::{CString, OsStr};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Connections the system holds until they are accepted.
const BACKLOG: i32 = 1024;
/// What the system may hold of a peer's that was not read, bytes (Linux takes twice as much): a peer that sends without end
/// is slowed down by this.
const INBOUND_BYTES: usize = 2048;

/// A socket that listens.
pub(super) struct Listener {
    pub(super) socket: Socket,
    /// The endpoint really bound.
    pub(super) endpoint: String,
    /// What it has made and removes again, if it is still the same.
    path: Option<(PathBuf, (u64, u64))>,
    folder: Option<PathBuf>,
}

/// Binds an endpoint that [`check`](crate::endpoint::check) has let through.
pub(super) fn bind(endpoint: &str) -> Result<Listener, EndpointError> {
    match endpoint.split_once("://") {
        Some(("tcp", address)) => bind_tcp(address),
        Some(("ipc", "*")) => bind_somewhere(),
        Some(("ipc", path)) => bind_path(path),
        _ => Err(EndpointError::Malformed("its transport is not one to publish on; use tcp:// or ipc://")),
    }
}

fn bind_tcp(address: &str) -> Result<Listener, EndpointError> {
    let wanted = resolve(address)?;
    let socket = Socket::new(Domain::for_address(wanted), Type::STREAM, None).map_err(failed)?;
    let bound = (|| {
        socket.set_nonblocking(true)?;
        socket.set_reuse_address(true)?;
        if wanted.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        socket.set_recv_buffer_size(INBOUND_BYTES)?;
        socket.bind(&wanted.into())?;
        socket.listen(BACKLOG)?;
        socket.local_addr()
    })();
    let bound = bound.map_err(failed)?.as_socket().ok_or(EndpointError::NotLocal)?;
    let endpoint = match bound {
        SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("tcp://[{}%{}]:{}", v6.ip(), v6.scope_id(), v6.port()),
        bound => format!("tcp://{bound}"),
    };
    Ok(Listener { socket, endpoint, path: None, folder: None })
}

/// The address that a TCP endpoint names.
fn resolve(address: &str) -> Result<SocketAddr, EndpointError> {
    let (host, port) = address.rsplit_once(':').ok_or(EndpointError::Malformed("it has no port"))?;
    let port = match port {
        "*" => 0,
        port => port.parse().map_err(|_| EndpointError::Malformed("its port is not a number from 0 to 65535"))?,
    };
    let Some(literal) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        let ip = match host {
            "*" => Ipv4Addr::UNSPECIFIED,
            host => host.parse().map_err(|_| match index_of(host) {
                Some(_) => EndpointError::Malformed("the native transport binds addresses, not names of interfaces"),
                None => EndpointError::NotLocal,
            })?,
        };
        return Ok(SocketAddr::new(IpAddr::V4(ip), port));
    };
    let (ip, scope) = literal.split_once('%').map_or((literal, None), |(ip, scope)| (ip, Some(scope)));
    let ip = match ip {
        "*" => Ipv6Addr::UNSPECIFIED,
        ip => ip.parse().map_err(|_| EndpointError::Malformed("its host in brackets is no IPv6 address"))?,
    };
    let scope = scope.map_or(Some(0), |scope| scope.parse().ok().or_else(|| index_of(scope)));
    Ok(SocketAddr::V6(SocketAddrV6::new(ip, port, 0, scope.ok_or(EndpointError::NotLocal)?)))
}

/// The number of an interface.
fn index_of(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name ends with a NUL and is only read.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

fn bind_path(path: &str) -> Result<Listener, EndpointError> {
    let address = match path.strip_prefix('@') {
        Some(name) => SockAddr::unix(OsStr::from_bytes(&[b"\0", name.as_bytes()].concat())),
        None => SockAddr::unix(path),
    };
    let address = address.map_err(|_| EndpointError::Path("it is too long for a socket"))?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    let file = (!path.starts_with('@')).then(|| PathBuf::from(path));
    if let Some(file) = &file {
        // It was looked at: what is there is a socket that nobody listens at. Should another have come meanwhile, the bind
        // fails, or that one was taken from under its holder, as by any bind.
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    socket.bind(&address).and_then(|()| socket.listen(BACKLOG)).map_err(failed)?;
    let path = file.and_then(|file| Some((file.clone(), identity(&file)?)));
    Ok(Listener { socket, endpoint: format!("ipc://{}", endpoint_path(path.as_ref(), &address)), path, folder: None })
}

fn endpoint_path(path: Option<&(PathBuf, (u64, u64))>, address: &SockAddr) -> String {
    match (path, address.as_abstract_namespace()) {
        (Some((path, _)), _) => path.display().to_string(),
        (None, Some(name)) => format!("@{}", String::from_utf8_lossy(name)),
        (None, None) => String::new(),
    }
}

/// A path of its own, in a folder of its own.
fn bind_somewhere() -> Result<Listener, EndpointError> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("kv-events-{}-{number}", std::process::id()));
        match std::fs::create_dir(&folder) {
            Ok(()) => {
                let path = folder.join("socket");
                let bound = bind_path(&path.display().to_string());
                if bound.is_err() {
                    let _ = std::fs::remove_dir(&folder);
                }
                return bound.map(|mut listener| {
                    listener.folder = Some(folder);
                    listener
                });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Listens no longer, for whoever else may hold the socket too (a forked child), and removes what it made.
impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        if let Some((path, made)) = &self.path {
            if identity(path) == Some(*made) {
                let _ = std::fs::remove_file(path);
            }
        }
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|file| (file.dev(), file.ino()))
}

fn failed(error: io::Error) -> EndpointError {
    match error.raw_os_error() {
        Some(libc::EADDRINUSE) => EndpointError::InUse,
        Some(libc::ENODEV | libc::EADDRNOTAVAIL) => EndpointError::NotLocal,
        _ => EndpointError::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_address_is_read() {
        let v6 = |ip: &str, scope| SocketAddr::V6(SocketAddrV6::new(ip.parse().unwrap(), 7, 0, scope));
        for (text, expected) in [
            ("127.0.0.1:7", "127.0.0.1:7".parse().unwrap()),
            ("*:7", "0.0.0.0:7".parse().unwrap()),
            ("10.0.0.1:*", "10.0.0.1:0".parse().unwrap()),
            ("[::1]:7", v6("::1", 0)),
            ("[*]:7", v6("::", 0)),
            ("[fe80::1%3]:7", v6("fe80::1", 3)),
            ("[fe80::1%lo]:7", v6("fe80::1", 1)),
        ] {
            assert_eq!(resolve(text), Ok(expected), "{text}");
        }
        assert!(resolve("lo:7").unwrap_err().to_string().contains("not names of interfaces"));
        assert_eq!(resolve("localhost:7"), Err(EndpointError::NotLocal));
        assert_eq!(resolve("[fe80::1%nowhere]:7"), Err(EndpointError::NotLocal));
    }

    #[test]
    fn a_path_of_its_own_is_gone_with_the_listener() {
        let listener = bind("ipc://*").unwrap();
        let path = PathBuf::from(listener.endpoint.strip_prefix("ipc://").unwrap());
        assert!(std::os::unix::net::UnixStream::connect(&path).is_ok());
        drop(listener);
        assert!(!path.exists() && !path.parent().unwrap().exists());
    }
}
