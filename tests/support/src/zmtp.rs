//! A peer that speaks ZMTP 3.0 over a bare TCP stream, well or badly.

use std::io::{Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Connects to a `tcp://` endpoint and says nothing.
pub fn connect(endpoint: &str) -> TcpStream {
    let stream = TcpStream::connect(endpoint.trim_start_matches("tcp://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // What is written is there when the connection is reset.
    stream.set_nodelay(true).unwrap();
    stream
}

/// Exchanges greetings, the NULL mechanism.
pub fn greet(stream: &mut TcpStream) -> Result<()> {
    let mut greeting = [0_u8; 64];
    greeting[0] = 0xff;
    greeting[9] = 0x7f;
    greeting[10] = 3;
    greeting[11] = 1;
    greeting[12..16].copy_from_slice(b"NULL");
    stream.write_all(&greeting)?;
    stream.read_exact(&mut greeting)
}

/// Greets and becomes a SUB.
pub fn shake_hands(stream: &mut TcpStream) -> Result<()> {
    greet(stream)?;
    let ready = b"\x05READY\x0bSocket-Type\0\0\0\x03SUB";
    stream.write_all(&[4, ready.len() as u8])?;
    stream.write_all(ready)?;
    let mut head = [0; 2];
    stream.read_exact(&mut head)?;
    let mut body = vec![0; head[1].into()];
    stream.read_exact(&mut body)
}

/// The frame that subscribes to `topic`, which is shorter than 255 bytes.
pub fn subscription(topic: &[u8]) -> Vec<u8> {
    [&[0, topic.len() as u8 + 1, 1], topic].concat()
}

/// Whether the other side closes the connection, after whatever it still sends.
pub fn is_closed_by_peer(stream: &mut TcpStream) -> bool {
    let mut some = [0; 4096];
    loop {
        match stream.read(&mut some) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

/// Ends the connection at once, by a reset.
#[cfg(unix)]
pub fn reset(stream: TcpStream) {
    use std::os::fd::AsRawFd;
    let now = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: `now` is valid and only read; the descriptor is the stream's.
    let set = unsafe {
        let (value, len) = ((&raw const now).cast(), size_of_val(&now) as libc::socklen_t);
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, value, len)
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}
