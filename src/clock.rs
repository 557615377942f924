//! Milliseconds since the epoch that never go back within a process, whatever the system's clock does.

use crate::sync::Latest;
use std::time::{SystemTime, UNIX_EPOCH};

/// Now, or the latest time that was told before, if the system's clock is behind that.
pub(crate) fn now_ms() -> u64 {
    static LATEST: Latest = Latest::new();
    LATEST.or_later(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_stands_still_until_it_has_caught_up() {
        let latest = Latest::new();
        let told = [1000, 2000, 500, 0, 1999, 2000, 2001, 1, u64::MAX, 5].map(|reading| latest.or_later(reading));
        assert_eq!(told, [1000, 2000, 2000, 2000, 2000, 2000, 2001, 2001, u64::MAX, u64::MAX]);
    }

    #[test]
    fn senders_that_read_at_once_never_see_it_go_back() {
        let latest = Latest::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let latest = &latest;
                scope.spawn(move || {
                    let mut last = 0;
                    for n in 0..10_000_u64 {
                        // Goes to and fro, for each thread in another way.
                        let told = latest.or_later(n * 7 % (1000 + thread));
                        assert!(told >= last);
                        last = told;
                    }
                });
            }
        });
    }

    #[test]
    fn the_real_clock_is_in_this_century() {
        let (one, two) = (now_ms(), now_ms());
        assert!(one > 1_700_000_000_000 && two >= one);
    }
}
