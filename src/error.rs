//! What can be wrong with settings, and why a publisher does not start.

use std::{error, fmt, io};

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A setting that an enabled publisher needs is empty. Give it a value, or disable the publisher.
    Missing {
        /// The setting's flag name.
        setting: &'static str,
    },
    /// A number outside its range.
    OutOfRange {
        /// The setting's flag name.
        setting: &'static str,
        /// What it was set to.
        value: usize,
        /// The least that is allowed.
        min: usize,
        /// The most that is allowed.
        max: usize,
    },
    /// Not a wait strategy.
    WaitStrategy {
        /// What it was set to.
        text: String,
    },
    /// Not a transport, or not one of this build.
    Transport {
        /// What it was set to.
        transport: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Not one of those that can be allowed to connect.
    Peer {
        /// What it was set to.
        peer: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// With these names even the shortest event is too long. Shorten them or raise `kv_events_max_event_bytes`.
    NamesTooLong {
        /// Bytes of the names, or of that event.
        bytes: usize,
        /// The limit.
        max_event_bytes: usize,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Missing { setting } => {
                write!(f, "{setting} is empty; set it, or set enable_kv_events=false")
            }
            ConfigError::OutOfRange { setting, value, min, max } => {
                write!(f, "{setting}={value} is out of range; it goes from {min}")?;
                if *max < usize::MAX { write!(f, " to {max}") } else { f.write_str(" up") }
            }
            ConfigError::WaitStrategy { text } => write!(
                f,
                "kv_events_wait_strategy={text:?} is invalid; expected park, nap, nap:50us, poll:50us or spin (at most 100ms)"
            ),
            ConfigError::Transport { transport, reason } => write!(f, "kv_events_transport: {transport:?} {reason}"),
            ConfigError::Peer { peer, reason } => write!(f, "kv_events_allow_peers: {peer:?} {reason}"),
            ConfigError::NamesTooLong { bytes, max_event_bytes } => write!(
                f,
                "backend, model, salt and LoRA names alone make events of {bytes} bytes and more, above \
                 kv_events_max_event_bytes={max_event_bytes}; shorten them or raise it"
            ),
        }
    }
}

impl error::Error for ConfigError {}

/// Why a publisher did not start. Nothing is left behind: no thread, no socket, no file.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// A setting cannot be used.
    Config(ConfigError),
    /// The endpoint cannot be bound.
    Endpoint {
        /// The endpoint, as configured.
        endpoint: String,
        /// What is wrong with it.
        cause: EndpointError,
    },
    /// The sender thread could not be created.
    Thread(io::Error),
    /// There is no memory for the queue's table. Lower `kv_events_queue_capacity`, or raise the limit on memory.
    QueueMemory {
        /// The setting.
        queue_capacity: usize,
    },
    /// ZeroMQ would not make or set up a socket.
    Socket(io::Error),
    /// The system has not what a socket takes. Found out before one is made, since ZeroMQ ends the process where it lacks
    /// any of it. What other threads take at that very moment, and what is missing only later, is not covered: leave
    /// some room.
    Resources(Shortage),
}

/// What the system could not give. It reads on from what it is needed for: "cannot open the socket: 5 more file descriptors
/// are needed".
#[derive(Debug)]
#[non_exhaustive]
pub enum Shortage {
    /// File descriptors.
    Descriptors {
        /// How many are missing.
        more: usize,
        /// What the system said.
        cause: io::Error,
    },
    /// Threads.
    Threads {
        /// How many are missing.
        more: usize,
        /// What the system said.
        cause: io::Error,
    },
    /// Memory (address space).
    Memory {
        /// How much has to be free, bytes.
        bytes: usize,
        /// What the system said.
        cause: io::Error,
    },
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shortage::Descriptors { more: 1, .. } => f.write_str("1 more file descriptor is needed"),
            Shortage::Descriptors { more, .. } => write!(f, "{more} more file descriptors are needed"),
            Shortage::Threads { more: 1, .. } => f.write_str("1 more thread is needed"),
            Shortage::Threads { more, .. } => write!(f, "{more} more threads are needed"),
            Shortage::Memory { bytes, .. } => write!(f, "{} MiB of memory have to be free", bytes.div_ceil(1 << 20)),
        }?;
        f.write_str(match self {
            Shortage::Descriptors { .. } => "; raise the limit of open files (ulimit -n), or close some",
            Shortage::Threads { .. } => "; raise the limit of threads (ulimit -u, a cgroup's pids.max), or end some",
            Shortage::Memory { .. } => "; raise the limit of memory (ulimit -v, -d), or free some",
        })
    }
}

impl error::Error for Shortage {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Shortage::Descriptors { cause, .. } | Shortage::Threads { cause, .. } | Shortage::Memory { cause, .. } => {
                Some(cause)
            }
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Config(error) => error.fmt(f),
            StartError::Endpoint { endpoint, cause } => write!(f, "endpoint {} {cause}", endpoint.escape_debug()),
            StartError::Thread(error) => write!(f, "the sender thread could not be created: {error}"),
            StartError::QueueMemory { queue_capacity } => write!(
                f,
                "there is no memory for a queue of kv_events_queue_capacity={queue_capacity} events; lower it, or raise the \
                 limit on memory"
            ),
            StartError::Socket(error) => write!(f, "the PUB socket could not be created: {error}"),
            StartError::Resources(shortage) => write!(f, "cannot open the socket: {shortage}"),
        }
    }
}

/// What is said already is no source of its own, lest a chain of errors says it twice.
impl error::Error for StartError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            StartError::Config(error) => error.source(),
            StartError::Endpoint { cause, .. } => cause.source(),
            StartError::Thread(error) | StartError::Socket(error) => error.source(),
            StartError::Resources(shortage) => shortage.source(),
            StartError::QueueMemory { .. } => None,
        }
    }
}

impl From<Shortage> for StartError {
    fn from(shortage: Shortage) -> Self {
        StartError::Resources(shortage)
    }
}

impl From<ConfigError> for StartError {
    fn from(error: ConfigError) -> Self {
        StartError::Config(error)
    }
}

/// What is wrong with an endpoint. It reads on from the endpoint's name: "endpoint X is in use".
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointError {
    /// Something else is bound to it; for `ipc`, a live process holds the path.
    InUse,
    /// Not an endpoint this crate can bind; says what part is wrong.
    Malformed(&'static str),
    /// The host is neither an address nor an interface of this machine. Host names are not looked up for a bind.
    NotLocal,
    /// The `ipc` path cannot be used; says why. Nothing at the path was touched.
    Path(&'static str),
    /// The operating system said no, in its own words.
    Other(String),
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndpointError::InUse => f.write_str("is in use; stop what holds it or choose another"),
            EndpointError::Malformed(what) => write!(f, "is malformed: {what}"),
            EndpointError::NotLocal => f.write_str(
                "names no address or interface of this machine (host names are not looked up); \
                 write an IP address of it, or * for all",
            ),
            EndpointError::Path(what) => write!(f, "cannot be used: {what}"),
            EndpointError::Other(cause) => write!(f, "cannot be bound: {cause}"),
        }
    }
}

impl error::Error for EndpointError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    /// An error with all that is behind it, the way programs print it.
    fn chain(error: &dyn Error) -> String {
        let mut texts = vec![error.to_string()];
        let mut behind = error.source();
        while let Some(error) = behind {
            texts.push(error.to_string());
            behind = error.source();
        }
        texts.join(": ")
    }

    #[test]
    fn nothing_is_said_twice() {
        let os = || io::Error::from_raw_os_error(24);
        let endpoint = |cause| StartError::Endpoint { endpoint: "tcp://x".to_owned(), cause };
        for (error, once) in [
            (endpoint(EndpointError::InUse), "is in use"),
            (endpoint(EndpointError::Other("no luck".to_owned())), "no luck"),
            (ConfigError::Missing { setting: "kv_events_backend_id" }.into(), "kv_events_backend_id"),
            (StartError::Thread(os()), "os error 24"),
            (StartError::Socket(os()), "os error 24"),
            (StartError::Resources(Shortage::Descriptors { more: 5, cause: os() }), "os error 24"),
            (StartError::Resources(Shortage::Descriptors { more: 5, cause: os() }), "5 more file descriptors"),
        ] {
            let text = chain(&error);
            assert_eq!(text.matches(once).count(), 1, "{text}");
        }
    }
}
