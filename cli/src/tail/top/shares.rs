//! Whose events they are, and where the objects lie: counts by names that come from the wire, in bounded memory.

use std::collections::HashMap;
use std::time::Instant;

use super::Ticks;

/// Tenants that are counted at a time.
const TENANTS: usize = 1024;
/// Bytes of a name that are kept; names that differ only behind them count as one.
const NAME_BYTES: usize = 128;
/// Media that are told apart; the rest share a row.
const MEDIA: usize = 12;

/// The tenants with the most events.
///
/// While there are no more than [`TENANTS`], every count is exact. Beyond that it is the Misra-Gries sketch: a newcomer
/// to a full list costs each tenant in it a point, and who has none left goes. So whoever has more than one event in
/// [`TENANTS`] is in the list, and what a tenant's count lacks is at most what was `forgotten`.
#[derive(Debug, Default)]
pub struct Tenants {
    counts: HashMap<Box<str>, Count>,
    /// Events of tenants, whoever they are.
    pub events: u64,
    /// Rounds in which every count lost a point.
    pub forgotten: u64,
}

#[derive(Debug, Default)]
struct Count {
    points: u64,
    /// Events since it is in the list.
    events: u64,
    /// Those at each of the last ticks.
    ticks: Ticks<1>,
}

/// A tenant in the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    pub name: String,
    pub events: u64,
    /// Per second, in the window.
    pub rate: f64,
}

impl Tenants {
    pub fn event(&mut self, name: &str) {
        self.events += 1;
        let name = kept(name);
        if let Some(count) = self.counts.get_mut(name) {
            count.points += 1;
            count.events += 1;
        } else if self.counts.len() < TENANTS {
            self.counts.insert(name.into(), Count { points: 1, events: 1, ..Count::default() });
        } else {
            self.forgotten += 1;
            self.counts.retain(|_, count| {
                count.points -= 1;
                count.points > 0
            });
        }
    }

    /// The list's first `most`, by events; `before` are the ticks of the window.
    pub fn tick(&mut self, most: usize, before: &[Instant], now: Instant) -> Vec<Tenant> {
        let rated =
            |(name, count): (_, &mut Count)| (name, count.events, count.ticks.tick([count.events], before, now)[0]);
        let mut all: Vec<(&Box<str>, u64, f64)> = self.counts.iter_mut().map(rated).collect();
        all.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        all.truncate(most);
        all.into_iter().map(|(name, events, rate)| Tenant { name: name.to_string(), events, rate }).collect()
    }

    /// How many tenants are in the list.
    pub fn len(&self) -> usize {
        self.counts.len()
    }
}

/// Events by medium.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Media(Vec<Medium>);

/// Events of one medium.
#[derive(Clone, Debug, PartialEq)]
pub struct Medium {
    /// In lower case, as producers do not agree on it.
    pub name: String,
    pub stored: u64,
    pub removed: u64,
    pub cleared: u64,
}

impl Media {
    /// The medium's counts.
    pub fn of(&mut self, name: &str) -> &mut Medium {
        let name = kept(name);
        let known = |medium: &Medium| medium.name.eq_ignore_ascii_case(name);
        let is_full = self.0.len() >= MEDIA;
        let index = self.0.iter().position(known).unwrap_or_else(|| {
            if !is_full {
                let name = if self.0.len() + 1 == MEDIA { "(others)".to_owned() } else { name.to_ascii_lowercase() };
                self.0.push(Medium { name, stored: 0, removed: 0, cleared: 0 });
            }
            self.0.len() - 1
        });
        &mut self.0[index]
    }

    pub fn all(&self) -> &[Medium] {
        &self.0
    }
}

/// As much of a name as is kept.
fn kept(name: &str) -> &str {
    let mut end = name.len().min(NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn few_tenants_are_counted_exactly() {
        let mut tenants = Tenants::default();
        let now = Instant::now();
        tenants.event("b");
        tenants.tick(9, &[], now);
        ["a", "b", "a", "a", "c"].into_iter().for_each(|name| tenants.event(name));
        let top = tenants.tick(2, &[now], now + Duration::from_secs(1));
        let tenant = |name: &str, events, rate| Tenant { name: name.to_owned(), events, rate };
        assert_eq!(top, [tenant("a", 3, 3.0), tenant("b", 2, 1.0)]);
        assert_eq!((tenants.len(), tenants.events, tenants.forgotten), (3, 6, 0));
    }

    #[test]
    fn a_flood_of_tenants_is_bounded_and_hides_no_big_one() {
        let mut tenants = Tenants::default();
        let events = 20 * TENANTS;
        for n in 0..events {
            tenants.event(&format!("passing-{n}"));
            if n % 50 == 0 {
                tenants.event("steady");
            }
        }
        assert!(tenants.len() <= TENANTS);
        let top = tenants.tick(1, &[], Instant::now());
        assert_eq!(top[0].name, "steady");
        let true_count = (events / 50 + 1) as u64;
        assert!(top[0].events <= true_count && top[0].events + tenants.forgotten >= true_count);
        assert!(tenants.forgotten > 0 && tenants.forgotten <= tenants.events / TENANTS as u64);
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let mut tenants = Tenants::default();
        tenants.event(&format!("{}é-1", "x".repeat(NAME_BYTES - 1)));
        tenants.event(&format!("{}é-2", "x".repeat(NAME_BYTES - 1)));
        assert_eq!(tenants.tick(9, &[], Instant::now())[0].name, "x".repeat(NAME_BYTES - 1));
        assert_eq!(tenants.len(), 1);
    }

    #[test]
    fn media_are_told_apart_without_case_and_not_without_end() {
        let mut media = Media::default();
        media.of("GPU").stored += 1;
        media.of("gpu").removed += 1;
        for n in 0..99 {
            media.of(&format!("m{n}")).stored += 1;
        }
        let all = media.all();
        assert_eq!(all.len(), MEDIA);
        assert_eq!((all[0].name.as_str(), all[0].stored, all[0].removed), ("gpu", 1, 1));
        assert_eq!((all[MEDIA - 1].name.as_str(), all[MEDIA - 1].stored), ("(others)", 99 - (MEDIA as u64 - 2)));
    }
}
