//! A view "which object is readable on which medium", kept from a publisher's stream and thrown away whenever it cannot
//! be trusted.
//!
//! `cargo run --example subscribe -- tcp://127.0.0.1:5557`; a number behind the endpoint ends it after so many messages.

use kv_events::decode::Event;
use kv_events::subscriber::{Delivery, RecvError, Settings, Subscriber};
use kv_events::tracker::Verdict;
use std::collections::{BTreeSet, HashMap};

/// Tenant and object key, to the media the object is readable on.
type View = HashMap<(String, String), BTreeSet<String>>;

fn apply(view: &mut View, event: &Event<'_>) {
    let Some(envelope) = event.envelope() else { return };
    let tenant = envelope.tenant_id.unwrap_or_default().to_owned();
    let object = (tenant, envelope.object_key.unwrap_or_default().to_owned());
    match event {
        Event::Stored(stored) => {
            let medium = stored.medium.map(|medium| medium.to_string()).unwrap_or_default();
            view.entry(object).or_default().insert(medium);
        }
        Event::Removed(removed) => {
            let medium = removed.medium.map(|medium| medium.to_string()).unwrap_or_default();
            if let Some(media) = view.get_mut(&object) {
                media.remove(&medium);
                if media.is_empty() {
                    view.remove(&object);
                }
            }
        }
        Event::Cleared(_) => view.retain(|(tenant, _), _| *tenant != object.0),
        _ => {}
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let endpoint = arguments.next().unwrap_or("tcp://127.0.0.1:5557".into());
    let limit: usize = arguments.next().map_or(Ok(usize::MAX), |limit| limit.parse())?;
    let mut subscriber = Subscriber::connect([&endpoint], &Settings::default())?;
    let (mut view, mut messages) = (View::new(), 0);
    while messages < limit {
        match subscriber.recv() {
            // Told before the message that shows it. A router with access to the master would load a snapshot here, then
            // apply that message and all later ones. Forgetting is the other safe answer: never wrong, only cold.
            Ok(Delivery::Notice { verdict: Verdict::Duplicate, .. }) => {}
            Ok(Delivery::Notice { sequence, verdict, .. }) => {
                println!("before message {sequence}: {verdict:?}: starting over");
                view.clear();
            }
            Ok(Delivery::Message(message)) => {
                for event in message.batch().events() {
                    match event {
                        Ok(event) => apply(&mut view, &event),
                        Err(error) if error.foreign_kind().is_some() => {} // nothing that this view is made of
                        Err(error) => println!("message {}: {error}", message.sequence()),
                    }
                }
                messages += 1;
                println!("message {}: {} objects are readable", message.sequence(), view.len());
            }
            Ok(Delivery::Reconnected { .. }) => {} // the next message tells
            Ok(Delivery::Malformed { reason, .. }) => println!("not a message: {reason}"),
            Err(RecvError::Empty) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
