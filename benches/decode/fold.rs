//! The checksum that every contender has to arrive at.

/// What a contender read: how many events, and a checksum of all that is in them. The default is what all report for a
/// payload that cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fold {
    pub events: u64,
    sum: u64,
}

impl Fold {
    pub fn event(&mut self) {
        self.events += 1;
    }

    #[inline(always)]
    pub fn number(&mut self, number: u64) {
        self.sum = (self.sum.rotate_left(5) ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }

    #[inline(always)]
    pub fn optional(&mut self, number: Option<u64>) {
        self.number(number.unwrap_or(u64::MAX));
    }

    #[inline(always)]
    pub fn text(&mut self, text: Option<&str>) {
        let Some(text) = text else { return self.number(u64::MAX) };
        self.number(text.len() as u64);
        let mut rest = text.as_bytes();
        while let Some((chunk, behind)) = rest.split_first_chunk::<8>() {
            self.number(u64::from_le_bytes(*chunk));
            rest = behind;
        }
        self.number(rest.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
    }
}
