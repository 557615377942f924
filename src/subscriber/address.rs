//! Where an endpoint's name leads.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::net;
use std::path::PathBuf;

/// An endpoint, taken apart.
#[derive(Clone, Debug)]
pub(super) enum Address {
    Tcp { host: Host, port: u16 },
    Unix(Path),
}

#[derive(Clone, Debug)]
pub(super) enum Host {
    Ip(IpAddr),
    /// What only the system can find out, and may take its time for.
    Name(String),
}

/// A path, or a name in Linux's abstract namespace (`ipc://@name`).
#[derive(Clone, Debug)]
pub(super) enum Path {
    File(PathBuf),
    Abstract(String),
}

impl Path {
    pub(super) fn resolve(&self) -> io::Result<net::SocketAddr> {
        match self {
            Path::File(path) => net::SocketAddr::from_pathname(path),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Path::Abstract(name) => {
                #[cfg(target_os = "android")]
                use std::os::android::net::SocketAddrExt;
                #[cfg(target_os = "linux")]
                use std::os::linux::net::SocketAddrExt;
                net::SocketAddr::from_abstract_name(name)
            }
            #[cfg(not(any(target_os = "linux", target_os = "android")))]
            Path::Abstract(name) => {
                let text = format!("@{name}: abstract names exist on Linux alone");
                Err(io::Error::new(io::ErrorKind::Unsupported, text))
            }
        }
    }
}

impl Host {
    /// All addresses, which may take as long as the system likes if it is a name.
    pub(super) fn resolve(&self, port: u16) -> io::Result<Vec<SocketAddr>> {
        match self {
            Host::Ip(ip) => Ok(vec![SocketAddr::new(*ip, port)]),
            Host::Name(name) => Ok((name.as_str(), port).to_socket_addrs()?.collect()),
        }
    }
}

impl Address {
    /// Of a publisher to connect to.
    pub(super) fn of_peer(endpoint: &str) -> Result<Self, &'static str> {
        let (is_tcp, address) = transport(endpoint)?;
        if !is_tcp {
            return path(address);
        }
        let (host, port) = host_and_port(address)?;
        if host.is_empty() || host == "*" {
            return Err("names no host: a subscriber connects to one");
        }
        let host = match parse_host(host)? {
            Some(ip) => Host::Ip(ip),
            None => Host::Name(host.to_owned()),
        };
        match port.parse() {
            Ok(port @ 1..) if port_is_plain(&port, address) => Ok(Address::Tcp { host, port }),
            _ => Err("has no port from 1 to 65535"),
        }
    }

    /// Of ours, to be connected to.
    pub(super) fn of_ours(endpoint: &str) -> Result<Self, &'static str> {
        let (is_tcp, address) = transport(endpoint)?;
        if !is_tcp {
            return path(address);
        }
        let (host, port) = host_and_port(address)?;
        let ip = match host {
            "*" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            host => parse_host(host)?.ok_or("has a host that is no address: a bind takes one of this machine, or *")?,
        };
        let port = match port {
            "*" => 0,
            port => match port.parse() {
                Ok(number) if port_is_plain(&number, address) => number,
                _ => return Err("has no port from 0 to 65535, and not * either"),
            },
        };
        Ok(Address::Tcp { host: Host::Ip(ip), port })
    }
}

fn transport(endpoint: &str) -> Result<(bool, &str), &'static str> {
    if endpoint.contains('\0') {
        return Err("contains a NUL byte");
    }
    if endpoint.trim() != endpoint {
        return Err("has white space around it");
    }
    match endpoint.split_once("://") {
        None => Err("names no transport: write it like tcp://127.0.0.1:5557"),
        Some(("tcp", address)) => Ok((true, address)),
        Some(("ipc", "")) => Err("names no path"),
        Some(("ipc", path)) => Ok((false, path)),
        Some(_) => Err("has a transport that is not supported: use tcp or ipc"),
    }
}

fn path(path: &str) -> Result<Address, &'static str> {
    let path = match path.strip_prefix('@') {
        Some(name) => Path::Abstract(name.to_owned()),
        None => Path::File(PathBuf::from(path)),
    };
    match path.resolve() {
        Ok(_) => Ok(Address::Unix(path)),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Err("has an abstract name, which only Linux knows"),
        Err(_) => Err("has a path that is too long for a socket"),
    }
}

fn host_and_port(address: &str) -> Result<(&str, &str), &'static str> {
    address.rsplit_once(':').ok_or("names no port: write it like tcp://127.0.0.1:5557")
}

/// Digits alone: no sign, no white space.
fn port_is_plain(port: &u16, address: &str) -> bool {
    address.rsplit(':').next().is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        && address.ends_with(&port.to_string())
}

/// The address that a host is, if it is one. IPv6 may stand in brackets or without.
fn parse_host(host: &str) -> Result<Option<IpAddr>, &'static str> {
    const NO_IPV6: &str = "has no IPv6 address: write it like tcp://[::1]:5557 or tcp://::1:5557";
    let bare = match (host.strip_prefix('['), host.ends_with(']')) {
        (Some(rest), true) => &rest[..rest.len() - 1],
        (None, false) => host,
        _ => return Err(NO_IPV6),
    };
    if bare.contains(':') || bare.len() != host.len() {
        return match bare.split_once('%') {
            // Which interface a zone is, only the system knows.
            Some((ip, zone)) if ip.parse::<Ipv6Addr>().is_ok() && !zone.is_empty() => Ok(None),
            Some(_) => Err(NO_IPV6),
            None => bare.parse::<Ipv6Addr>().map(|ip| Some(IpAddr::V6(ip))).map_err(|_| NO_IPV6),
        };
    }
    if host.contains(|c: char| c.is_whitespace() || ";/".contains(c)) {
        return Err("has a host that is no address");
    }
    Ok(host.parse::<Ipv4Addr>().ok().map(IpAddr::V4))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Ip(ip) => ip.fmt(f),
            Host::Name(name) => f.write_str(name),
        }
    }
}
