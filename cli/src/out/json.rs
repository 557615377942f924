//! JSON that is as safe on a terminal as in a file.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use super::escape::{first, is_unseen};

/// Writes `value` without a space too many. What else than JSON's own control characters a terminal obeys (DEL, and the
/// C1 set, in which U+009B begins a command) is escaped too; for a terminal, all that [`Plain`](super::Plain) writes out.
pub fn write(output: &mut impl Write, value: &impl Serialize, for_terminal: bool) -> io::Result<()> {
    Ok(value.serialize(&mut Serializer::with_formatter(output, Escaping { for_terminal }))?)
}

struct Escaping {
    for_terminal: bool,
}

impl Formatter for Escaping {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let is_escaped = |c| if self.for_terminal { is_unseen(c) } else { ('\u{7f}'..='\u{9f}').contains(&c) };
        let mut rest = fragment;
        while let Some((at, c)) = first(rest, is_escaped) {
            writer.write_all(&rest.as_bytes()[..at])?;
            c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(writer, "\\u{unit:04x}"))?;
            rest = &rest[at + c.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_terminal_obeys_is_escaped_and_reads_the_same() {
        let all: String = ('\0'..=char::MAX).collect();
        for text in ["", "plain", "\u{1b}[31m\u{9b}31m\u{7f}", "\u{80}é\u{a0}\u{9f}", "key \u{85}\n", &all] {
            for for_terminal in [false, true] {
                let mut json = Vec::new();
                write(&mut json, &text, for_terminal).unwrap();
                let json = String::from_utf8(json).unwrap();
                assert!(!json.contains(char::is_control), "{json:?}");
                assert!(!for_terminal || !json.contains(is_unseen), "{json:?}");
                assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
            }
        }
    }
}
