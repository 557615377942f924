//! A handle of a publisher: what a master calls.

use super::live::{Live, StopOnDrop};
use crate::config::Config;
#[cfg(feature = "native")]
use crate::config::TransportKind;
use crate::error::StartError;
use crate::media::{MediaSet, Medium};
use crate::object::{Before, Object};
use crate::outcome::Outcome;
use crate::status::{Status, StopReport};
use crate::transport::Transport;
use std::sync::Arc;
use std::time::Duration;

/// Publishes a master's KV-cache events.
///
/// It is a handle: a clone is another handle of the same publisher, and costs an addition. Every method takes `&self`, from
/// any number of threads, under any lock. Dropping the last handle stops the publisher with
/// [`DROP_DEADLINE`](crate::DROP_DEADLINE), unless
/// [`stop`](Self::stop) was called before; an unfinished
/// [`Sweep`](crate::Sweep) has a handle too. In a forked child nothing is stopped,
/// waited for or closed: all of that is the parent's. A call copies the
/// event's bytes and waits for nobody: not for a socket, a subscriber, room in the queue (when it is full the oldest call is
/// evicted, and a sequence gap tells subscribers where), nor for another thread, whatever a scheduler does to that one. The one
/// exception is a `stored` while any remove-all sweep is open: it may wait for another such `stored`, or for the begin or end
/// of a sweep.
///
/// What a program cannot prevent remains: a thread that the scheduler stops, a page that is not in memory, and the allocator,
/// which the first calls need until the pool has grown to what the load takes. A thread that runs under `SCHED_FIFO` may call
/// it, also on the sender's processor.
///
/// The events of one call travel in one message, in order, and are lost together or not at all. Events of one thread keep
/// their order.
///
/// # Where it may be kept
///
/// Publishers are independent of each other, each with a thread, a socket and a ZeroMQ context of its own. A handle may be
/// kept in a scope or in a `static`; what a `static` holds is never dropped, so stop it before the process ends, or the
/// tail is lost. A panic in a caller's thread, even one in the middle of a sweep, leaves the publisher working.
///
/// A **forked child** gets a dead copy: it may exit or drop the copy without disturbing the parent, its calls are refused
/// ([`Refusal::Forked`](crate::Refusal::Forked)), its stop does nothing. To publish from the child, start a publisher there.
/// The socket's descriptors close on `exec`; a child that lives on without it holds the parent's port, as it does all
/// inherited ones. (Refusals rest on `pthread_atfork`: a child made by the bare `clone` or `vfork` system call may do
/// nothing but `exec` or `_exit`, as ever.)
///
/// ```
/// use kv_events::{Before, Config, MediaSet, Object, Publisher};
/// use std::time::Duration;
///
/// let publisher = Publisher::start(Config::new("tcp://127.0.0.1:0", "master-0"))?;
/// let object = Object::new("tenant-a", "model/block/42").in_group("batch-7");
///
/// publisher.committed(&object, MediaSet::CPU); // a Put: `stored` on cpu
/// let before = Before::mutation(MediaSet::CPU); // taken before the metadata changes
/// publisher.changed(&object, before, MediaSet::DISK); // an offload: `removed` from cpu, `stored` on disk
/// publisher.removed(&object, Before::mutation(MediaSet::DISK)); // a Remove
///
/// let report = publisher.stop(Duration::from_secs(5));
/// # #[cfg(feature = "zmq")]
/// assert!(report.closed && report.published == 4);
/// # Ok::<(), kv_events::StartError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Publisher {
    pub(super) live: Option<Arc<StopOnDrop>>,
}

impl Publisher {
    /// Starts a publisher: binds the socket and starts the sender thread. With `enabled` false, or built with neither of the
    /// features `zmq` and `native`, nothing is opened and every call does nothing.
    ///
    /// # Errors
    ///
    /// Says which setting is wrong, or names the endpoint and why it cannot be bound; nothing is left behind.
    pub fn start(config: Config) -> Result<Publisher, StartError> {
        config.validate()?;
        #[cfg(feature = "native")]
        if config.transport == TransportKind::Native {
            let transport = crate::transport::native::NativeSocket::of(&config);
            if config.enabled {
                crate::os::prove(transport.needs())?;
            }
            return Self::start_with(config, transport);
        }
        #[cfg(feature = "zmq")]
        {
            let transport = crate::transport::zmq::PubSocket::of(&config);
            if config.enabled {
                crate::os::prove(transport.needs())?;
            }
            Self::start_with(config, transport)
        }
        #[cfg(not(feature = "zmq"))]
        {
            if config.enabled {
                crate::logging::warning!(
                    "kv-events: built without a transport (feature `zmq` or `native`): nothing is published"
                );
            }
            Ok(Publisher::disabled())
        }
    }

    /// Starts a publisher on a transport of the caller's; see [`transport`](crate::transport). The settings of sockets
    /// (endpoint, marks, peers) are the transport's to heed, or not; the endpoint may not be empty all the same. With
    /// `enabled` false nothing is opened and every call does nothing.
    ///
    /// # Errors
    ///
    /// Says which setting is wrong, or what the transport said when it was opened; nothing is left behind.
    pub fn start_with(config: Config, transport: impl Transport + 'static) -> Result<Publisher, StartError> {
        config.validate()?;
        if !config.enabled {
            if !config.bind_endpoint.is_empty() || !config.backend_id.is_empty() {
                crate::logging::warning!(
                    "kv-events: there are settings, but enable_kv_events is false: nothing is published"
                );
            }
            return Ok(Publisher::disabled());
        }
        if !config.emit_object_key {
            crate::logging::warning!(
                "kv-events: kv_events_emit_object_key=false silences every stored and removed event; only cleared is sent"
            );
        }
        let live = Live::start(&config, Box::new(transport))?;
        Ok(Publisher { live: Some(Arc::new(StopOnDrop::new(live))) })
    }

    /// A publisher that publishes nothing, for masters that hold one in any case.
    #[must_use]
    pub const fn disabled() -> Publisher {
        Publisher { live: None }
    }

    /// Whether it publishes at all.
    pub const fn is_enabled(&self) -> bool {
        self.live.is_some()
    }

    /// The endpoint really bound (the port, if 0 or `*` was asked for); `None` if disabled.
    pub fn bound_endpoint(&self) -> Option<&str> {
        self.live.as_ref().map(|live| live.endpoint())
    }

    /// A value was committed (Put, Upsert, BatchPut): `stored` for every medium it is readable on now, whether or not it
    /// was before.
    #[inline]
    pub fn committed(&self, object: &Object<'_>, media_now: MediaSet) -> Outcome {
        self.object_call(object, MediaSet::EMPTY, media_now)
    }

    /// An object's replicas changed (copy, move, offload, promotion, replica clear, eviction, stale handles): `removed`
    /// for the media that went, `stored` for those that came, nothing for the rest.
    #[inline]
    pub fn changed(&self, object: &Object<'_>, before: Before, media_now: MediaSet) -> Outcome {
        let before = before.spend();
        self.object_call(object, before.minus(media_now), media_now.minus(before))
    }

    /// An object was removed, or its old value became unreadable under an Upsert: `removed` for every medium.
    #[inline]
    pub fn removed(&self, object: &Object<'_>, before: Before) -> Outcome {
        self.object_call(object, before.spend(), MediaSet::EMPTY)
    }

    /// One `stored` on one medium, for masters that work out the difference themselves.
    #[inline]
    pub fn stored_on(&self, object: &Object<'_>, medium: Medium) -> Outcome {
        self.object_call(object, MediaSet::EMPTY, medium.into())
    }

    /// One `removed` from one medium, for masters that work out the difference themselves.
    #[inline]
    pub fn removed_from(&self, object: &Object<'_>, medium: Medium) -> Outcome {
        self.object_call(object, medium.into(), MediaSet::EMPTY)
    }

    /// One `cleared`: everything of the tenant is gone from every medium. `""` is the tenant `default`.
    ///
    /// **Nothing guards it.** A `stored` that another thread publishes just before it is wiped from every view although
    /// the object is there. To remove everything shard by shard use [`sweep`](Self::sweep), which looks out for that.
    pub fn cleared(&self, tenant: &str) -> Outcome {
        match &self.live {
            Some(live) => live.cleared(tenant),
            None => Outcome::Disabled,
        }
    }

    /// How the publisher is doing. Takes no lock that a call could be waiting for.
    pub fn status(&self) -> Status {
        match &self.live {
            Some(live) => live.status(),
            None => Status { healthy: true, ..Status::default() },
        }
    }

    /// Stops: calls are refused from now on, what was accepted is sent, then the socket lingers, all within `deadline`.
    /// What could not be sent is counted as abandoned. Never hangs: if the socket is not closed by then, the sender thread
    /// closes it when it can, and the report says so.
    ///
    /// On the sender's own thread, in a logger or a transport, it does not wait: what is queued is abandoned, and the report says
    /// that the socket is not closed.
    ///
    /// A second stop changes nothing; it waits, within its own deadline, for the first to end, and reports again. The
    /// publisher cannot be started again; start another.
    pub fn stop(&self, deadline: Duration) -> StopReport {
        match &self.live {
            Some(live) => live.stop(deadline),
            None => StopReport { closed: true, ..StopReport::default() },
        }
    }

    /// One call: `removed` from some media, then `stored` on others.
    #[inline]
    pub(crate) fn object_call(&self, object: &Object<'_>, removed: MediaSet, stored: MediaSet) -> Outcome {
        match &self.live {
            Some(live) => live.object_call(object, removed, stored),
            None => Outcome::Disabled,
        }
    }
}
