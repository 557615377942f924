//! Text that comes from elsewhere, made safe to print.

use std::fmt;

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Text in which whatever a terminal obeys, and whatever shows as nothing, is written out.
pub struct Plain<'a>(pub &'a str);

impl<'a> Plain<'a> {
    /// No more than about so many bytes of it, and a mark if that is not all.
    pub fn cut_behind(self, bytes: usize) -> Cut<'a> {
        let mut end = self.0.len().min(bytes);
        while !self.0.is_char_boundary(end) {
            end -= 1;
        }
        Cut { text: Plain(&self.0[..end]), mark: if end < self.0.len() { "..." } else { "" } }
    }
}

/// See [`Plain::cut_behind`].
pub struct Cut<'a> {
    text: Plain<'a>,
    mark: &'static str,
}

impl fmt::Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text, self.mark)
    }
}

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((at, c)) = first(rest, is_unseen) {
            f.write_str(&rest[..at])?;
            write!(f, "{}", c.escape_default())?;
            rest = &rest[at + c.len_utf8()..];
        }
        f.write_str(rest)
    }
}

/// The first character of this kind, and where it stands. Of ASCII the control characters alone are looked at.
pub fn first(text: &str, is_wanted: impl Fn(char) -> bool) -> Option<(usize, char)> {
    let is_plain = |byte: &u8| (b' '..=b'~').contains(byte);
    let mut at = 0;
    loop {
        at += text.as_bytes()[at..].iter().position(|byte| !is_plain(byte))?;
        let c = text[at..].chars().next()?;
        if is_wanted(c) {
            return Some((at, c));
        }
        at += c.len_utf8();
    }
}

/// Control and format characters, line and paragraph separators (general categories Cc, Cf, Zl, Zp), and the others that
/// show as nothing wherever they stand (Default_Ignorable_Code_Point).
pub fn is_unseen(c: char) -> bool {
    use GeneralCategory::{Control, Format, LineSeparator, ParagraphSeparator};
    !(' '..='~').contains(&c)
        && (matches!(c.general_category(), Control | Format | LineSeparator | ParagraphSeparator) || is_ignorable(c))
}

/// Default_Ignorable_Code_Point, as Unicode's DerivedCoreProperties lists it, but for what has the category Cf. It holds all
/// places that are kept for such characters, so new ones do not change it.
fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2065}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex::Regex;

    #[test]
    fn nothing_in_it_is_obeyed_by_a_terminal() {
        let plain = |text| Plain(text).to_string();
        assert_eq!(plain(""), "");
        assert_eq!(plain("tenant-é-界"), "tenant-é-界");
        assert_eq!(plain("\u{1b}]0;x\u{7}\u{9b}2J\r\u{7f}"), r"\u{1b}]0;x\u{7}\u{9b}2J\r\u{7f}");
        assert_eq!(plain("a\u{202e}b\u{feff}"), r"a\u{202e}b\u{feff}");
        assert_eq!(Plain("aéb").cut_behind(4).to_string(), "aéb");
        assert_eq!(Plain("aéb").cut_behind(2).to_string(), "a...");
        assert_eq!(plain("é\u{200d}界\u{e0041}~"), r"é\u{200d}界\u{e0041}~");
    }

    #[test]
    fn all_of_unicode_is_classed_as_another_table_has_it() {
        let table = Regex::new(r"^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]$").unwrap();
        let mut buffer = [0; 4];
        let wrong: Vec<char> = ('\0'..=char::MAX)
            .filter(|&c| {
                let text = c.encode_utf8(&mut buffer);
                let is_found = first(text, is_unseen).is_some();
                is_found != table.is_match(text) || is_found != is_unseen(c)
            })
            .collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
