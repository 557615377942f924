//! One endpoint: whoever is connected to it, or to whom it connects, again and again.

use super::address::{Address, Host};
use super::counters::{ConnectionFigures, StatusHandle};
use super::delivery::Delivery;
use super::settings::{ConnectError, Settings};
use super::sources::Sources;
use super::stream::Stream;
use mio::event::Source as _;
use mio::net::{TcpListener, UnixListener};
use mio::{Interest, Registry, Token};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::{Duration, Instant};

/// Until the first attempt after a connection was lost.
const SOON: Duration = Duration::from_millis(100);
/// Longest time between two attempts.
const LATER: Duration = Duration::from_secs(1);
/// Likewise, where what answers is not a publisher.
const MUCH_LATER: Duration = Duration::from_secs(5);
/// How often it is looked whether a name was found.
const LOOK: Duration = Duration::from_millis(20);

pub(super) struct Endpoint {
    /// Tells it from all others there were.
    pub(super) id: u64,
    pub(super) name: String,
    way: Way,
    figures: Arc<ConnectionFigures>,
    /// Whoever is or was connected. One, if we connect.
    peers: Vec<Peer>,
}

/// Somebody who is no publisher.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ForeignPeer {
    /// And will not be one soon.
    Known,
    /// Or one that is not there yet, behind a tunnel, say.
    Silent,
}

struct Peer {
    address: String,
    /// The connection's token.
    link: Option<usize>,
    was_up: bool,
    sources: Sources,
    figures: Arc<ConnectionFigures>,
}

enum Way {
    Out { address: Address, dial: Dial, next: VecDeque<SocketAddr>, pause: Duration },
    In { listener: Listener, bound: String, token: Token },
}

enum Dial {
    Waiting(Instant),
    Resolving(Receiver<io::Result<Vec<SocketAddr>>>),
    /// A connection is being made, or there.
    Linked,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, Option<PathBuf>),
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, Some(path)) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Endpoint {
    /// One to connect to.
    pub(super) fn out(id: u64, name: &str, settings: &Settings, status: &StatusHandle) -> Result<Self, ConnectError> {
        let address =
            Address::of_peer(name).map_err(|reason| ConnectError::BadEndpoint { endpoint: name.to_owned(), reason })?;
        let way = Way::Out { address, dial: Dial::Waiting(Instant::now()), next: VecDeque::new(), pause: SOON };
        let mut endpoint =
            Endpoint { id, name: name.to_owned(), way, figures: ConnectionFigures::new(), peers: Vec::new() };
        endpoint.admit(String::new(), settings, status);
        Ok(endpoint)
    }

    /// One of ours, which others connect to.
    pub(super) fn bind(id: u64, name: &str, token: Token, registry: &Registry) -> Result<Self, ConnectError> {
        let address =
            Address::of_ours(name).map_err(|reason| ConnectError::BadEndpoint { endpoint: name.to_owned(), reason })?;
        let (listener, bound) = listen(&address, name, registry, token)
            .map_err(|cause| ConnectError::System { endpoint: name.to_owned(), cause })?;
        let way = Way::In { listener, bound, token };
        Ok(Endpoint { id, name: name.to_owned(), way, figures: ConnectionFigures::new(), peers: Vec::new() })
    }

    /// Where it was bound; as it was given if it was not.
    pub(super) fn bound(&self) -> &str {
        match &self.way {
            Way::In { bound, .. } => bound,
            Way::Out { .. } => &self.name,
        }
    }

    pub(super) fn token(&self) -> Option<Token> {
        match &self.way {
            Way::In { token, .. } => Some(*token),
            Way::Out { .. } => None,
        }
    }

    /// When [`dial`](Endpoint::dial) has something to do.
    pub(super) fn dial_at(&self) -> Option<Instant> {
        match &self.way {
            Way::Out { dial: Dial::Waiting(until), .. } => Some(*until),
            Way::Out { dial: Dial::Resolving(_), .. } => Some(Instant::now() + LOOK),
            _ => None,
        }
    }

    /// Goes on with the next attempt, if it is time for it. A stream is a connection that was begun.
    pub(super) fn dial(&mut self, now: Instant, settings: &Settings) -> Option<Stream> {
        let Way::Out { address, dial, next, .. } = &mut self.way else { return None };
        match dial {
            Dial::Waiting(until) if *until > now => return None,
            Dial::Linked => return None,
            Dial::Waiting(_) => {}
            Dial::Resolving(answer) => match answer.try_recv() {
                Err(TryRecvError::Empty) => return None,
                Ok(Ok(addresses)) => next.extend(addresses),
                Ok(Err(error)) => {
                    self.failed(&format!("the name does not resolve: {error}"), LATER, false);
                    return None;
                }
                Err(TryRecvError::Disconnected) => {
                    self.failed("the name could not be looked up", LATER, false);
                    return None;
                }
            },
        }
        let begun = match address {
            Address::Unix(path) => path.resolve().and_then(|path| Stream::unix(&path)),
            Address::Tcp { host, port } => {
                if next.is_empty() && matches!(dial, Dial::Resolving(_)) {
                    Err(io::Error::other("the name has no address"))
                } else if let (true, Host::Name(_)) = (next.is_empty(), &*host) {
                    match look_up(host.clone(), *port) {
                        Ok(answer) => {
                            *dial = Dial::Resolving(answer);
                            return None;
                        }
                        Err(error) => Err(error),
                    }
                } else if next.is_empty() {
                    host.resolve(*port).and_then(|all| Stream::tcp(all[0], settings))
                } else {
                    next.pop_front().map_or_else(|| Err(io::ErrorKind::NotFound.into()), |to| Stream::tcp(to, settings))
                }
            }
        };
        match begun {
            Ok(stream) => {
                *dial = Dial::Linked;
                Some(stream)
            }
            Err(error) => {
                self.failed(&error.to_string(), LATER, false);
                None
            }
        }
    }

    /// The next peer that connects, if there is one, and where it comes from.
    pub(super) fn accept(&self, settings: &Settings) -> io::Result<(Stream, String)> {
        let Way::In { listener, .. } = &self.way else { return Err(io::ErrorKind::WouldBlock.into()) };
        let (stream, from) = match listener {
            Listener::Tcp(listener) => {
                let (stream, from) = listener.accept()?;
                (Stream::Tcp(stream), from.ip().to_canonical().to_string())
            }
            Listener::Unix(listener, _) => (Stream::Unix(listener.accept()?.0), "ipc".to_owned()),
        };
        Ok((stream.accepted(settings)?, from))
    }

    fn admit(&mut self, address: String, settings: &Settings, status: &StatusHandle) -> usize {
        let same = self.peers.iter().filter(|peer| peer.address == address).count();
        let name = match (&self.way, same) {
            (Way::Out { .. }, _) => None,
            (Way::In { .. }, 0) => Some(address.clone()),
            (Way::In { .. }, _) => Some(format!("{address}#{}", same + 1)),
        };
        let figures = if name.is_some() { ConnectionFigures::new() } else { Arc::clone(&self.figures) };
        let sources = Sources::new(&self.name, name, &figures, settings, status);
        self.peers.push(Peer { address, link: None, was_up: false, sources, figures });
        self.peers.len() - 1
    }

    /// The handshake on a connection is over. Returns which peer it is; `None` if there are too many.
    pub(super) fn up(
        &mut self,
        token: usize,
        from: &str,
        settings: &Settings,
        status: &StatusHandle,
        ready: &mut VecDeque<Delivery>,
    ) -> Option<usize> {
        let place = match &mut self.way {
            Way::Out { pause, next, .. } => {
                *pause = SOON;
                next.clear();
                0
            }
            // A connection from where a peer was lost is taken for that peer.
            Way::In { .. } => {
                let lost = |peer: &Peer| peer.link.is_none() && peer.address == from;
                match self.peers.iter().position(lost) {
                    Some(place) => place,
                    None if self.peers.len() < settings.max_peers => self.admit(from.to_owned(), settings, status),
                    None => self.replace(from, settings, status)?,
                }
            }
        };
        let peer = &mut self.peers[place];
        peer.link = Some(token);
        peer.figures.connections.add(1);
        *peer.figures.trouble.lock() = None;
        if std::mem::replace(&mut peer.was_up, true) {
            peer.sources.reconnected(ready);
        }
        Some(place)
    }

    /// Gives the place of a peer that is gone to a newcomer.
    fn replace(&mut self, from: &str, settings: &Settings, status: &StatusHandle) -> Option<usize> {
        let place = self.peers.iter().position(|peer| peer.link.is_none())?;
        self.peers[place].sources.leave();
        let last = self.admit(from.to_owned(), settings, status);
        self.peers.swap_remove(place);
        // The newcomer was last, so it has taken that place.
        debug_assert_eq!(last, self.peers.len());
        Some(place)
    }

    /// A connection has ended: `place` is whose, if it was up.
    pub(super) fn lost(&mut self, place: Option<usize>, why: &str, foreign: Option<ForeignPeer>) {
        if let Some(peer) = place.and_then(|place| self.peers.get_mut(place)) {
            peer.link = None;
            peer.figures.disconnections.add(1);
        }
        match &mut self.way {
            Way::Out { pause, .. } => {
                let wait = if foreign == Some(ForeignPeer::Known) { MUCH_LATER } else { *pause };
                *pause = (*pause * 2).min(LATER);
                self.failed(why, wait, foreign.is_some());
            }
            Way::In { .. } => crate::logging::quietly(|| log::debug!("{}: a connection ended: {why}", self.name)),
        }
    }

    /// The next attempt is made in a while, or at once if there is another address to try.
    fn failed(&mut self, why: &str, wait: Duration, is_foreign: bool) {
        let Way::Out { dial, next, .. } = &mut self.way else { return };
        let wait = if next.is_empty() { wait } else { Duration::ZERO };
        *dial = Dial::Waiting(Instant::now() + wait);
        let mut trouble = self.figures.trouble.lock();
        if trouble.as_ref().is_none_or(|(told, _)| told != why) {
            if is_foreign {
                crate::logging::warning!("{}: there is {why}", self.name);
            } else {
                crate::logging::quietly(|| log::debug!("{}: {why}", self.name));
            }
            *trouble = Some((why.to_owned(), is_foreign));
        }
    }

    pub(super) fn sources(&mut self, place: usize) -> Option<&mut Sources> {
        self.peers.get_mut(place).map(|peer| &mut peer.sources)
    }

    /// Takes it out of the status.
    pub(super) fn leave(&self) {
        self.peers.iter().for_each(|peer| peer.sources.leave());
    }
}

/// Looks a name up on a thread of its own, which may take long.
fn look_up(host: Host, port: u16) -> io::Result<Receiver<io::Result<Vec<SocketAddr>>>> {
    let (answer, answered) = mpsc::channel();
    let ask = move || _ = answer.send(host.resolve(port));
    std::thread::Builder::new().name("kv-events-name".to_owned()).spawn(ask)?;
    Ok(answered)
}

fn listen(address: &Address, name: &str, registry: &Registry, token: Token) -> io::Result<(Listener, String)> {
    match address {
        Address::Tcp { host, port } => {
            let at = host.resolve(*port)?[0];
            let mut listener = TcpListener::bind(at)?;
            let bound = listener.local_addr()?;
            listener.register(registry, token, Interest::READABLE)?;
            if !matches!(bound.ip(), IpAddr::V4(ip) if ip.is_loopback()) && !bound.ip().is_loopback() {
                crate::logging::warning!(
                    "{name}: whoever reaches this address can publish here, since nobody is asked who they are"
                );
            }
            Ok((Listener::Tcp(listener), format!("tcp://{bound}")))
        }
        Address::Unix(path) => {
            let at = path.resolve()?;
            let mut listener = match UnixListener::bind_addr(&at) {
                // Left behind by a peer that is gone?
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    match at.as_pathname() {
                        Some(path) if is_socket(path) && !crate::os::is_held(path)? => std::fs::remove_file(path)?,
                        _ => return Err(error),
                    }
                    UnixListener::bind_addr(&at)?
                }
                other => other?,
            };
            listener.register(registry, token, Interest::READABLE)?;
            Ok((Listener::Unix(listener, at.as_pathname().map(Into::into)), name.to_owned()))
        }
    }
}

fn is_socket(path: &std::path::Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}
