//! Whether anybody answers, for whoever sees no events and wonders why.

use std::net::{IpAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
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
    /// What was listened for, if not all.
    under: String,
    next: Instant,
}

struct Endpoint {
    name: String,
    standing: Standing,
    since: Instant,
    was_there: bool,
    told: Option<Standing>,
    /// Where it will be told whether the host's name resolves, once somebody was asked.
    resolves: Option<Receiver<bool>>,
    /// Who was told to be there instead of a publisher.
    stranger: Option<String>,
    /// Publishers connect to it, not the other way round.
    is_bound: bool,
}

impl Presence {
    pub fn new(names: &[String], is_bound: bool, topic: &str, status: StatusHandle, now: Instant) -> Self {
        let under = if topic.is_empty() { String::new() } else { format!(" under the topic {topic:?}") };
        let endpoints = names.iter().map(|name| Endpoint { is_bound, ..Endpoint::new(name, now) }).collect();
        Presence { status, endpoints, under, next: now + TICK }
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
            let of_it = || sources.iter().filter(|source| source.endpoint == endpoint.name);
            let stranger = of_it().find(|source| source.is_stranger).and_then(|source| source.trouble.clone());
            if let (Standing::Away, Some(stranger)) = (standing, stranger) {
                return endpoint.meet(stranger, now);
            }
            let text = endpoint.look(standing, now)?;
            Some(if standing == Standing::Waiting { text + &self.under } else { text })
        };
        self.endpoints.iter_mut().filter_map(look).collect()
    }
}

impl Endpoint {
    fn new(name: &str, now: Instant) -> Self {
        Endpoint {
            name: name.to_owned(),
            standing: Standing::Away,
            since: now,
            was_there: false,
            told: None,
            resolves: None,
            stranger: None,
            is_bound: false,
        }
    }

    /// What there is to tell of somebody who is there and no publisher.
    fn meet(&mut self, stranger: String, now: Instant) -> Option<String> {
        if self.standing != Standing::Away {
            (self.standing, self.since) = (Standing::Away, now);
        }
        self.told = Some(Standing::Away);
        if self.stranger.as_ref() == Some(&stranger) {
            return None;
        }
        let text = format!("at {} there is {stranger}; still trying", self.name);
        self.stranger = Some(stranger);
        Some(text)
    }

    /// What there is to tell now that this is how it stands.
    fn look(&mut self, standing: Standing, now: Instant) -> Option<String> {
        if self.standing != standing {
            (self.standing, self.since) = (standing, now);
        }
        if standing != Standing::Away {
            self.was_there = true;
            self.resolves = None;
            self.stranger = None;
        }
        if self.told == Some(standing) {
            return if standing == Standing::Away { self.unresolved() } else { None };
        }
        let was_away = self.told == Some(Standing::Away);
        let is_settled = now.saturating_duration_since(self.since) >= PATIENCE;
        let name = &self.name;
        let text = match standing {
            Standing::Away if !is_settled => return None,
            Standing::Away if self.is_bound && self.was_there => {
                Some(format!("nobody is connected to {name} any more"))
            }
            Standing::Away if self.is_bound => Some(format!("nobody has connected to {name} yet")),
            Standing::Away if self.was_there => Some(format!("nobody answers at {name} any more; still trying")),
            Standing::Away => match missing_path(name) {
                Some(path) => Some(format!("there is no {path} yet; still trying")),
                None => match resolution(name, &mut self.resolves) {
                    Err(TryRecvError::Empty) if now.saturating_duration_since(self.since) < 2 * PATIENCE => {
                        return None;
                    }
                    Ok(false) => Some(format!("{name} does not resolve; still trying")),
                    _ => Some(format!("nobody answers at {name} yet; still trying")),
                },
            },
            // Whoever is told that it is connected wants to know what comes of it.
            Standing::Waiting if !is_settled && !was_away => return None,
            Standing::Waiting => Some(format!("connected to {name}; nothing was said yet")),
            Standing::Heard => was_away.then(|| format!("connected to {name}")),
        };
        self.told = Some(standing);
        text
    }
}

impl Endpoint {
    /// What an answer that came late makes worth telling.
    fn unresolved(&mut self) -> Option<String> {
        let answer = self.resolves.as_ref()?.try_recv();
        (answer == Ok(false)).then(|| format!("{} does not resolve; still trying", self.name))
    }
}

/// Whether the host's name resolves, as far as is known. The first call asks, on a thread of its own, since it may take
/// longer than anybody here can wait; an address needs no asking.
fn resolution(endpoint: &str, resolves: &mut Option<Receiver<bool>>) -> Result<bool, TryRecvError> {
    let Some(host) = named_host(endpoint) else {
        return Ok(true);
    };
    let answer = resolves.get_or_insert_with(|| {
        let (answer, answered) = mpsc::channel();
        let host = host.to_owned();
        // Without a thread the sender is dropped, and it stays unknown.
        let ask = move || _ = answer.send((host.as_str(), 0).to_socket_addrs().is_ok());
        drop(thread::Builder::new().name("resolver".to_owned()).spawn(ask));
        answered
    });
    answer.try_recv()
}

/// The host of a TCP endpoint, unless it is an address.
fn named_host(endpoint: &str) -> Option<&str> {
    let (host, _) = endpoint.strip_prefix("tcp://")?.rsplit_once(':')?;
    (!host.starts_with('[') && host.parse::<IpAddr>().is_err()).then_some(host)
}

/// The path of an endpoint where no file is. An abstract name has none.
fn missing_path(endpoint: &str) -> Option<&str> {
    let path = endpoint.strip_prefix("ipc://").filter(|path| !path.starts_with('@'))?;
    (!Path::new(path).exists()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_that_lasts_is_told_once() {
        let begun = Instant::now();
        let mut endpoint = Endpoint::new("tcp://127.0.0.1:1", begun);
        let mut look = |ms, standing| endpoint.look(standing, begun + Duration::from_millis(ms)).unwrap_or_default();
        for (ms, standing, expected) in [
            (0, Standing::Away, ""),
            (999, Standing::Away, ""),
            (1_000, Standing::Away, "nobody answers at tcp://127.0.0.1:1 yet; still trying"),
            (9_000, Standing::Away, ""),
            (9_200, Standing::Waiting, "connected to tcp://127.0.0.1:1; nothing was said yet"),
            (20_000, Standing::Waiting, ""),
            (21_000, Standing::Heard, ""),
            (22_000, Standing::Away, ""),
            (22_500, Standing::Heard, ""),
            (23_000, Standing::Away, ""),
            (24_000, Standing::Away, "nobody answers at tcp://127.0.0.1:1 any more; still trying"),
            (25_000, Standing::Heard, "connected to tcp://127.0.0.1:1"),
            (26_000, Standing::Heard, ""),
        ] {
            assert_eq!(look(ms, standing), expected, "{ms}");
        }
    }

    #[test]
    fn what_does_not_resolve_or_is_not_there_is_told() {
        let begun = Instant::now();
        let late = begun + Duration::from_secs(2);
        for resolves in [false, true] {
            let mut endpoint = Endpoint::new("tcp://a.invalid:1", begun);
            let (answer, answered) = mpsc::channel();
            endpoint.resolves = Some(answered);
            assert_eq!(endpoint.look(Standing::Away, begun + PATIENCE), None);
            answer.send(resolves).unwrap();
            let what =
                if resolves { "nobody answers at tcp://a.invalid:1 yet" } else { "tcp://a.invalid:1 does not resolve" };
            assert_eq!(endpoint.look(Standing::Away, late), Some(format!("{what}; still trying")));
            assert_eq!(endpoint.look(Standing::Away, late), None);
        }
        // An answer that comes late is told when it does.
        let mut endpoint = Endpoint::new("tcp://a.invalid:1", begun);
        let (answer, answered) = mpsc::channel();
        endpoint.resolves = Some(answered);
        let told = endpoint.look(Standing::Away, late);
        assert_eq!(told.as_deref(), Some("nobody answers at tcp://a.invalid:1 yet; still trying"));
        answer.send(false).unwrap();
        let told = endpoint.look(Standing::Away, late);
        assert_eq!(told.as_deref(), Some("tcp://a.invalid:1 does not resolve; still trying"));

        let mut endpoint = Endpoint::new("ipc:///nonexistent/x", begun);
        let told = endpoint.look(Standing::Away, late);
        assert_eq!(told.as_deref(), Some("there is no /nonexistent/x yet; still trying"));
        assert_eq!(named_host("tcp://[::1]:5"), None);
        assert_eq!(named_host("tcp://10.0.0.1:5"), None);
        assert_eq!(named_host("tcp://host:5"), Some("host"));
        assert_eq!(missing_path("ipc://@abstract"), None);
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
