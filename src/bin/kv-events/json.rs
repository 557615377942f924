//! JSON that is as safe on a terminal as in a file.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Writes `value` without a space too many. What else than JSON's own control characters a terminal obeys (DEL, and the
/// C1 set, in which U+009B begins a command) is escaped too.
pub fn write(output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    Ok(value.serialize(&mut Serializer::with_formatter(output, Escaping))?)
}

struct Escaping;

impl Formatter for Escaping {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut plain = 0;
        for (at, matched) in fragment.match_indices(|c| ('\u{7f}'..='\u{9f}').contains(&c)) {
            writer.write_all(&fragment.as_bytes()[plain..at])?;
            matched.chars().try_for_each(|c| write!(writer, "\\u{:04x}", u32::from(c)))?;
            plain = at + matched.len();
        }
        writer.write_all(&fragment.as_bytes()[plain..])
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn whatever_a_terminal_obeys_is_escaped_and_reads_the_same() {
        for text in ["", "plain", "\u{1b}[31m\u{9b}31m\u{7f}", "\u{80}é\u{a0}\u{9f}", "key \u{85}\n"] {
            let mut json = Vec::new();
            super::write(&mut json, &text).unwrap();
            let json = String::from_utf8(json).unwrap();
            assert!(!json.contains(char::is_control), "{json:?}");
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
