//! The system's sockets, whichever kind they are.

use super::settings::Settings;
use mio::event::Source as _;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net;
use std::time::Duration;

#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Begins to connect.
    pub(super) fn tcp(to: SocketAddr, settings: &Settings) -> io::Result<Self> {
        let stream = TcpStream::connect(to)?;
        tune(&SockRef::from(&stream), settings)?;
        Ok(Stream::Tcp(stream))
    }

    pub(super) fn unix(to: &net::SocketAddr) -> io::Result<Self> {
        UnixStream::connect_addr(to).map(Stream::Unix)
    }

    /// A connection that a peer made.
    pub(super) fn accepted(self, settings: &Settings) -> io::Result<Self> {
        if let Stream::Tcp(stream) = &self {
            tune(&SockRef::from(stream), settings)?;
        }
        Ok(self)
    }

    pub(super) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self {
            // Not by the registry's own call, which tells a logger that might panic.
            Stream::Tcp(stream) => stream.register(registry, token, interest),
            Stream::Unix(stream) => stream.register(registry, token, interest),
        }
    }

    /// Whether the connection is made: `None` while it is open.
    pub(super) fn is_connected(&self) -> io::Result<Option<()>> {
        let (error, peer) = match self {
            Stream::Tcp(stream) => (stream.take_error()?, stream.peer_addr().map(drop)),
            Stream::Unix(stream) => (stream.take_error()?, stream.peer_addr().map(drop)),
        };
        match (error, peer) {
            (Some(error), _) => Err(error),
            (None, Ok(())) => Ok(Some(())),
            (None, Err(error)) if error.kind() == io::ErrorKind::NotConnected => Ok(None),
            (None, Err(error)) => Err(error),
        }
    }

    /// Whether it is connected to itself, as the system may do where nobody listens on one of its own ports.
    pub(super) fn is_own(&self) -> bool {
        match self {
            Stream::Tcp(stream) => {
                stream.local_addr().is_ok_and(|ours| stream.peer_addr().is_ok_and(|theirs| ours == theirs))
            }
            Stream::Unix(_) => false,
        }
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(into),
            Stream::Unix(stream) => stream.read(into),
        }
    }

    pub(super) fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(from),
            Stream::Unix(stream) => stream.write(from),
        }
    }
}

fn tune(socket: &SockRef<'_>, settings: &Settings) -> io::Result<()> {
    if let Some(bytes) = settings.receive_buffer_bytes {
        socket.set_recv_buffer_size(bytes as usize)?;
    }
    let Some(time) = settings.keepalive else { return Ok(()) };
    // Asked after half the time, then four times more.
    let interval = (time / 8).max(Duration::from_secs(1));
    let keepalive = TcpKeepalive::new().with_time(time / 2);
    #[cfg(not(target_os = "openbsd"))]
    let keepalive = keepalive.with_interval(interval).with_retries(4);
    socket.set_tcp_keepalive(&keepalive)?;
    // What was sent and is not answered stops those questions.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket.set_tcp_user_timeout(Some(time))?;
    Ok(())
}
