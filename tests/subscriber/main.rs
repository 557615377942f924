//! The subscriber on real sockets, and the tracker that judges its sequence numbers.

#[cfg(feature = "zmq")]
mod deliveries;
#[cfg(feature = "zmq")]
mod links;
#[cfg(feature = "zmq")]
mod listening;
#[cfg(feature = "zmq")]
mod sockets;
mod tracker;
mod tracker_properties;
mod tracker_topics;
