//! Lines of input, each of them bounded.

use std::io::{self, BufRead, BufReader, Read};

use anyhow::{Context, bail};

/// Bytes of a line at most, unless told otherwise.
pub const MAX_LINE: &str = "64M";

/// The lines of a file, with their numbers.
pub struct Lines<R> {
    input: BufReader<R>,
    /// What the input is called.
    name: String,
    line: Vec<u8>,
    number: u64,
    max: usize,
}

/// Lines of a Unicode text begin in this way if somebody's editor wants to be noticed.
const BYTE_ORDER_MARKS: [(&[u8], &str); 3] =
    [(b"\xef\xbb\xbf", "UTF-8"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16")];

impl<R: Read> Lines<R> {
    /// The lines of `input`, of at most `max` bytes each.
    pub fn new(input: R, name: String, max: usize) -> Self {
        Lines { input: BufReader::with_capacity(1 << 16, input), name, line: Vec::new(), number: 0, max }
    }

    /// The next line and its number, from 1; without what ends it, LF or CR LF.
    ///
    /// # Errors
    ///
    /// The input cannot be read, or the line is too long. No more of it is kept than is allowed.
    pub fn next(&mut self) -> anyhow::Result<Option<(u64, &[u8])>> {
        self.line.clear();
        self.number += 1;
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", self.name)),
            };
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            if self.line.len() + part.len() > self.max {
                bail!("{}, line {}: longer than {} bytes; --max-line sets the limit", self.name, self.number, self.max);
            }
            let is_over = chunk.is_empty();
            self.line.extend_from_slice(part);
            let taken = part.len() + usize::from(end.is_some());
            self.input.consume(taken);
            if is_over && self.line.is_empty() {
                return Ok(None);
            }
            if is_over || end.is_some() {
                break;
            }
        }
        Ok(Some((self.number, self.line.strip_suffix(b"\r").unwrap_or(&self.line))))
    }

    /// What the input is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the next line would have to be waited for.
    pub fn is_drained(&self) -> bool {
        self.input.buffer().is_empty()
    }
}

/// What is plainly wrong with a line that is no text of the kind wanted: a byte order mark at the begin of the first, or
/// nothing in it.
pub fn oddity(number: u64, line: &[u8]) -> Option<String> {
    let mark = BYTE_ORDER_MARKS.iter().find(|(mark, _)| number == 1 && line.starts_with(mark));
    if let Some((_, encoding)) = mark {
        return Some(format!("begins with a byte order mark ({encoding}); save the file as UTF-8 without one"));
    }
    line.iter().all(u8::is_ascii_whitespace).then(|| "is blank".to_owned())
}

/// A number of bytes, with K, M or G behind it for powers of 1024.
pub fn bytes(text: &str) -> Result<usize, &'static str> {
    const FORM: &str = "not a number of bytes from 1, like 65536, 64K, 16M or 1G";
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: usize = digits.parse().map_err(|_| FORM)?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or(FORM)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8], max: usize) -> Vec<Result<(u64, Vec<u8>), String>> {
        let mut lines = Lines::new(input, "it".to_owned(), max);
        let mut all = Vec::new();
        loop {
            match lines.next() {
                Ok(None) => return all,
                Ok(Some((number, line))) => all.push(Ok((number, line.to_vec()))),
                Err(error) => {
                    all.push(Err(error.to_string()));
                    return all;
                }
            }
        }
    }

    #[test]
    fn lines_are_numbered_and_end_as_they_may() {
        let line = |number, text: &[u8]| Ok((number, text.to_vec()));
        assert_eq!(lines(b"", 3), []);
        assert_eq!(lines(b"\n", 3), [line(1, b"")]);
        assert_eq!(lines(b"abc\n\nab\r\nc", 3), [line(1, b"abc"), line(2, b""), line(3, b"ab"), line(4, b"c")]);
        let long = Err("it, line 2: longer than 3 bytes; --max-line sets the limit".to_owned());
        assert_eq!(lines(b"abc\nabcd\na", 3), [line(1, b"abc"), long]);
    }

    #[test]
    fn a_line_that_never_ends_is_not_kept() {
        let mut endless = Lines::new(io::repeat(b'a'), "it".to_owned(), 1 << 20);
        assert!(endless.next().is_err());
        assert!(endless.line.capacity() <= 2 << 20, "{}", endless.line.capacity());
    }

    #[test]
    fn bytes_are_read_with_their_units() {
        assert_eq!(["1", "64k", "16M", "2G"].map(bytes), [Ok(1), Ok(65_536), Ok(16 << 20), Ok(2 << 30)]);
        for bad in ["", "0", "-1", "M", "1T", "1.5M", "99999999999999999999", "99999999999G", "1é"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
