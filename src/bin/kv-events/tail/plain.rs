//! Text from the wire, made safe to print.

use std::fmt::{self, Write as _};

/// Text from the wire with whatever could move the cursor, ring a bell, or turn the line around written out.
pub struct Plain<'a>(pub &'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if c.is_control() || is_unseen(c) {
                write!(f, "{}", c.escape_default())?;
            } else {
                f.write_char(c)?;
            }
        }
        Ok(())
    }
}

/// Characters that show as nothing but change what stands around them: direction marks, separators, invisible operators.
/// The joiners that scripts need (U+200C, U+200D) are none of them.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::Plain;

    #[test]
    fn nothing_in_it_is_obeyed_by_a_terminal() {
        let plain = |text| Plain(text).to_string();
        assert_eq!(plain("tenant-é-界"), "tenant-é-界");
        assert_eq!(plain("\u{1b}]0;x\u{7}\u{9b}2J\r\u{7f}"), r"\u{1b}]0;x\u{7}\u{9b}2J\r\u{7f}");
        assert_eq!(plain("a\u{202e}b\u{feff}"), r"a\u{202e}b\u{feff}");
    }
}
