//! Endpoints, checked before libzmq is asked: it lets too much through.

use crate::error::EndpointError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// What `bind` has to know of an endpoint.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) ipv6: bool,
    /// Whether only this machine can reach it.
    pub(crate) local: bool,
}

/// Longest `ipc` path that fits a socket address.
const LONGEST_IPC_PATH: usize = 107;

/// Checks what can be bound, without binding it.
pub(crate) fn check(endpoint: &str) -> Result<Endpoint, EndpointError> {
    if endpoint.contains('\0') {
        return Err(EndpointError::Malformed("it contains a NUL byte"));
    }
    if endpoint.trim() != endpoint {
        return Err(EndpointError::Malformed("there is white space around it"));
    }
    match endpoint.split_once("://") {
        Some(("tcp", address)) => check_tcp(address),
        Some(("ipc", path)) => check_ipc(path),
        Some(("inproc", "")) => Err(EndpointError::Malformed("inproc:// needs a name")),
        Some(("inproc", _)) => Err(EndpointError::Malformed(
            "an inproc endpoint reaches nobody, since the publisher's ZeroMQ context is its own; use tcp:// or ipc://",
        )),
        Some(_) => Err(EndpointError::Malformed("its transport is not one to publish on; use tcp:// or ipc://")),
        None => Err(EndpointError::Malformed("it has no transport; write tcp://ADDRESS:PORT or ipc://PATH")),
    }
}

fn check_tcp(address: &str) -> Result<Endpoint, EndpointError> {
    let (host, port) =
        address.rsplit_once(':').ok_or(EndpointError::Malformed("it has no port; write tcp://ADDRESS:PORT"))?;
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if port != "*" && (!is_number || port.parse::<u16>().is_err()) {
        return Err(EndpointError::Malformed("its port is not a number from 0 to 65535 (0 or * for any free one)"));
    }
    let v6 = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let ip = match v6 {
        Some("*") => Some(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        Some(literal) => {
            let bare = literal.split_once('%').map_or(literal, |(bare, _)| bare);
            let ip = bare.parse::<Ipv6Addr>();
            Some(IpAddr::V6(ip.map_err(|_| EndpointError::Malformed("its host in brackets is no IPv6 address"))?))
        }
        None if host == "*" => Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        None if host.contains(':') => {
            return Err(EndpointError::Malformed("an IPv6 address goes in brackets: tcp://[::1]:PORT"));
        }
        None if host.is_empty() || host.contains(|c: char| c.is_whitespace() || ";/".contains(c)) => {
            return Err(EndpointError::Malformed("its host is no address; write one, or * for all"));
        }
        // Anything else may be the name of an interface, which only the bind can tell.
        None => host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    };
    Ok(Endpoint { ipv6: v6.is_some(), local: ip.is_some_and(|ip| ip.is_loopback()) || host == "lo" })
}

fn check_ipc(path: &str) -> Result<Endpoint, EndpointError> {
    let local = Endpoint { ipv6: false, local: true };
    if path.is_empty() {
        return Err(EndpointError::Malformed("ipc:// needs a path"));
    }
    if path == "*" {
        return Ok(local);
    }
    if path.len() > LONGEST_IPC_PATH {
        return Err(EndpointError::Path("the path is longer than 107 bytes"));
    }
    if path.starts_with('@') {
        return if is_held(Path::new(path))? { Err(EndpointError::InUse) } else { Ok(local) };
    }
    let file = Path::new(path);
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(EndpointError::Path("its folder does not exist"));
    }
    match file.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(local),
        Err(error) => Err(EndpointError::Other(error.to_string())),
        Ok(metadata) if !is_socket(&metadata) => {
            Err(EndpointError::Path("something that is not a socket is at that path; it was left alone"))
        }
        // libzmq would take the path from under whoever listens there.
        Ok(_) if is_held(file)? => Err(EndpointError::InUse),
        Ok(_) => Ok(local),
    }
}

#[cfg(unix)]
fn is_socket(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.file_type().is_socket()
}

#[cfg(unix)]
fn is_held(path: &Path) -> Result<bool, EndpointError> {
    crate::os::is_held(path).map_err(|error| EndpointError::Other(error.to_string()))
}

#[cfg(not(unix))]
fn is_socket(_: &std::fs::Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn is_held(_: &Path) -> Result<bool, EndpointError> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_that_libzmq_would_let_through_or_choke_on_are_refused() {
        let malformed = |text: &str| matches!(check(text), Err(EndpointError::Malformed(_)));
        for text in [
            "",
            "127.0.0.1:5557",
            "udp://127.0.0.1:1",
            "tcp://",
            "tcp://127.0.0.1",
            "tcp://127.0.0.1:",
            "tcp://127.0.0.1:65536",
            "tcp://127.0.0.1:99999",
            "tcp://127.0.0.1:5557x",
            "tcp://127.0.0.1:5557 ",
            "tcp://127.0.0.1:+1",
            "tcp://127.0.0.1:-1",
            "tcp://:5557",
            "tcp://::1:5557",
            "tcp://[::g]:1",
            "tcp://a b:1",
            "ipc://",
            "inproc://",
            "inproc://x",
            "tcp://127.0.0.1;127.0.0.1:1",
            "tcp://127.0.0.1\0:1",
        ] {
            assert!(malformed(text), "{text:?}: {:?}", check(text));
        }
    }

    #[test]
    fn only_loopback_and_ipc_are_local() {
        for (text, ipv6, local) in [
            ("tcp://127.0.0.1:0", false, true),
            ("tcp://127.1.2.3:*", false, true),
            ("tcp://[::1]:5557", true, true),
            ("tcp://*:5557", false, false),
            ("tcp://0.0.0.0:5557", false, false),
            ("tcp://[::]:0", true, false),
            ("tcp://eth0:5557", false, false),
            ("tcp://192.0.2.1:65535", false, false),
            ("ipc://*", false, true),
        ] {
            assert_eq!(check(text), Ok(Endpoint { ipv6, local }), "{text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn ipc_paths_are_looked_at_before_they_are_taken() {
        use std::os::unix::net::UnixListener;
        let folder = std::env::temp_dir().join(format!("kv-events-endpoint-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let endpoint = |name: &str| format!("ipc://{}", folder.join(name).display());

        assert!(check(&endpoint("free.sock")).is_ok());
        assert!(matches!(check(&endpoint("no/such.sock")), Err(EndpointError::Path(_))));
        assert!(matches!(check(&endpoint(&"x".repeat(120))), Err(EndpointError::Path(_))));

        std::fs::write(folder.join("file"), "precious").unwrap();
        assert!(matches!(check(&endpoint("file")), Err(EndpointError::Path(_))));
        assert_eq!(std::fs::read_to_string(folder.join("file")).unwrap(), "precious");

        let listener = UnixListener::bind(folder.join("live.sock")).unwrap();
        assert_eq!(check(&endpoint("live.sock")), Err(EndpointError::InUse));
        drop(listener);
        assert!(check(&endpoint("live.sock")).is_ok(), "left over by the dead: free to take");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
