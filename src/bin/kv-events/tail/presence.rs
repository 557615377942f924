//! Whether anybody answers, for whoever sees no events and wonders why.

use std::time::{Duration, Instant};

use kv_events::subscriber::{SourceStatus, StatusHandle};

/// How often it is looked at.
const TICK: Duration = Duration::from_millis(200);
/// How long something may last before it is worth a word: publishers come and go, and most speak up soon.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether nobody answers at the source's endpoint.
pub fn is_away(source: &SourceStatus) -> bool {
    source.connections == source.disconnections
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Nobody answers.
    Away,
    /// Connected, and nothing was ever said.
    Waiting,
    /// Connected, and something was said once.
    Heard,
}

/// What is known of all endpoints, and what of it was told.
pub struct Presence {
    status: StatusHandle,
    endpoints: Vec<Endpoint>,
    next: Instant,
}

struct Endpoint {
    name: String,
    standing: Standing,
    since: Instant,
    was_there: bool,
    told: Option<Standing>,
}

impl Presence {
    pub fn new(names: &[String], status: StatusHandle, now: Instant) -> Self {
        Presence { status, endpoints: names.iter().map(|name| Endpoint::new(name, now)).collect(), next: now + TICK }
    }

    /// How long it may be until the next look.
    pub fn wait(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// What there is to tell, if it is time to look.
    pub fn look(&mut self) -> Vec<String> {
        let now = Instant::now();
        if now < self.next {
            return Vec::new();
        }
        self.next = now + TICK;
        let sources = self.status.sources();
        let look = |endpoint: &mut Endpoint| {
            let mut standing = Standing::Away;
            for source in sources.iter().filter(|source| source.endpoint == endpoint.name && !is_away(source)) {
                if standing != Standing::Heard {
                    standing = if source.received > 0 { Standing::Heard } else { Standing::Waiting };
                }
            }
            endpoint.look(standing, now)
        };
        self.endpoints.iter_mut().filter_map(look).collect()
    }
}

impl Endpoint {
    fn new(name: &str, now: Instant) -> Self {
        Endpoint { name: name.to_owned(), standing: Standing::Away, since: now, was_there: false, told: None }
    }

    /// What there is to tell now that this is how it stands.
    fn look(&mut self, standing: Standing, now: Instant) -> Option<String> {
        if self.standing != standing {
            (self.standing, self.since) = (standing, now);
        }
        self.was_there |= standing != Standing::Away;
        if self.told == Some(standing) {
            return None;
        }
        let was_away = self.told == Some(Standing::Away);
        let is_settled = now.saturating_duration_since(self.since) >= PATIENCE;
        let name = &self.name;
        let text = match standing {
            Standing::Away if !is_settled => return None,
            Standing::Away if self.was_there => Some(format!("nobody answers at {name} any more; still trying")),
            Standing::Away => Some(format!("nobody answers at {name} yet; still trying")),
            // Whoever is told that it is connected wants to know what comes of it.
            Standing::Waiting if !is_settled && !was_away => return None,
            Standing::Waiting => Some(format!("connected to {name}; nothing was said yet")),
            Standing::Heard => was_away.then(|| format!("connected to {name}")),
        };
        self.told = Some(standing);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_that_lasts_is_told_once() {
        let begun = Instant::now();
        let mut endpoint = Endpoint::new("tcp://a:1", begun);
        let mut look = |ms, standing| endpoint.look(standing, begun + Duration::from_millis(ms)).unwrap_or_default();
        for (ms, standing, expected) in [
            (0, Standing::Away, ""),
            (999, Standing::Away, ""),
            (1_000, Standing::Away, "nobody answers at tcp://a:1 yet; still trying"),
            (9_000, Standing::Away, ""),
            (9_200, Standing::Waiting, "connected to tcp://a:1; nothing was said yet"),
            (20_000, Standing::Waiting, ""),
            (21_000, Standing::Heard, ""),
            (22_000, Standing::Away, ""),
            (22_500, Standing::Heard, ""),
            (23_000, Standing::Away, ""),
            (24_000, Standing::Away, "nobody answers at tcp://a:1 any more; still trying"),
            (25_000, Standing::Heard, "connected to tcp://a:1"),
            (26_000, Standing::Heard, ""),
        ] {
            assert_eq!(look(ms, standing), expected, "{ms}");
        }
    }

    #[test]
    fn a_publisher_that_is_there_needs_no_word_unless_it_says_nothing() {
        let begun = Instant::now();
        for (standing, expected) in
            [(Standing::Heard, None), (Standing::Waiting, Some("connected to ipc://b; nothing was said yet"))]
        {
            let mut endpoint = Endpoint::new("ipc://b", begun);
            assert_eq!(endpoint.look(standing, begun + Duration::from_millis(10)), None);
            assert_eq!(endpoint.look(standing, begun + Duration::from_secs(2)).as_deref(), expected);
        }
    }
}
