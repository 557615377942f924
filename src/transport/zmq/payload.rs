//! A message of ZeroMQ's for a payload: as the wrapper's, which panics where there is no memory for one, and which is lost to a
//! call that a signal interrupts.

use std::io;

pub(super) struct Payload(zmq_sys::zmq_msg_t);

impl Payload {
    /// One of `len` bytes, all 0.
    pub(super) fn with_size(len: usize) -> io::Result<Payload> {
        let mut message = zmq_sys::zmq_msg_t::default();
        // SAFETY: `message` is valid for the call to write to, and in use from here on only if it succeeds.
        if unsafe { zmq_sys::zmq_msg_init_size(&mut message, len) } != 0 {
            // SAFETY: only reads the number that the call above has left to this thread.
            return Err(io::Error::from_raw_os_error(unsafe { zmq_sys::zmq_errno() }));
        }
        // SAFETY: the message has as many bytes, which nobody else knows of.
        unsafe { zmq_sys::zmq_msg_data(&mut message).cast::<u8>().write_bytes(0, len) };
        Ok(Payload(message))
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the message is in use until it is dropped; its bytes were written to when it was made, and nobody else knows
        // of them while it is borrowed.
        unsafe {
            let len = zmq_sys::zmq_msg_size(&self.0);
            std::slice::from_raw_parts_mut(zmq_sys::zmq_msg_data(&mut self.0).cast(), len)
        }
    }

    /// Sends it, without waiting. Where that fails it is as it was; else it is empty.
    pub(super) fn send(&mut self, socket: &mut zmq::Socket) -> zmq::Result<()> {
        // SAFETY: socket and message are alive and used by this thread alone.
        match unsafe { zmq_sys::zmq_msg_send(&mut self.0, socket.as_mut_ptr(), zmq::DONTWAIT) } {
            // SAFETY: only reads the number that the call above has left to this thread.
            -1 => Err(zmq::Error::from_raw(unsafe { zmq_sys::zmq_errno() })),
            _ => Ok(()),
        }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        // SAFETY: made by `with_size`, closed nowhere else; one that was sent is empty and may be closed all the same.
        unsafe { zmq_sys::zmq_msg_close(&mut self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_arrives() {
        let context = zmq::Context::new();
        let (mut from, to) = (context.socket(zmq::PAIR).unwrap(), context.socket(zmq::PAIR).unwrap());
        to.bind("inproc://payload").unwrap();
        from.connect("inproc://payload").unwrap();
        for len in [0, 1, 33, 34, 100_000] {
            let mut payload = Payload::with_size(len).unwrap();
            assert!(payload.bytes().len() == len && payload.bytes().iter().all(|byte| *byte == 0));
            payload.bytes().fill(7);
            payload.send(&mut from).unwrap();
            assert_eq!(payload.bytes(), b"");
            assert_eq!(to.recv_bytes(0).unwrap(), vec![7; len]);
        }
    }

    #[test]
    fn one_that_does_not_go_is_as_it_was() {
        let mut nowhere = zmq::Context::new().socket(zmq::PUSH).unwrap();
        let mut payload = Payload::with_size(3).unwrap();
        payload.bytes().copy_from_slice(b"abc");
        assert_eq!(payload.send(&mut nowhere), Err(zmq::Error::EAGAIN));
        assert_eq!(payload.bytes(), b"abc");
    }

    #[test]
    fn one_for_which_there_is_no_memory_is_an_error() {
        assert_eq!(Payload::with_size(usize::MAX / 4).err().and_then(|error| error.raw_os_error()), Some(libc::ENOMEM));
    }
}
