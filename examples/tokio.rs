//! A subscriber under tokio: one thread waits for messages, and has time for other work all the while.
//!
//! `cargo run --example tokio -- tcp://127.0.0.1:5557`; a number behind the endpoint ends it after so many messages.

use kv_events::subscriber::{Delivery, RecvError, Settings, Subscriber};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::LocalSet;

/// Deliveries as they come. Nothing in here blocks, and dropping it does not either.
struct Deliveries(AsyncFd<Subscriber>);

impl Deliveries {
    fn new(subscriber: Subscriber) -> std::io::Result<Self> {
        // It is only waited for, never read from.
        // SAFETY: a subscriber has one descriptor for as long as it lives, and this one is never exchanged for another.
        let fd = unsafe { AsyncFd::register_with_interest(subscriber, Interest::READABLE) }?;
        Ok(Deliveries(fd))
    }

    async fn next(&mut self) -> Result<Delivery, RecvError> {
        loop {
            // All there is, and only then the wait for more.
            match self.0.get_mut().try_recv() {
                Err(RecvError::Empty) => {}
                other => return other,
            }
            let wake_at = self.0.get_ref().wake_at();
            let readable = self.0.readable_mut();
            let ready = match wake_at {
                // Attempts to connect are made in `try_recv`, so it is called in time for the next one.
                Some(at) => tokio::time::timeout_at(at.into(), readable).await.ok(),
                None => Some(readable.await),
            };
            if let Some(guard) = ready {
                guard.map_err(RecvError::System)?.clear_ready();
            }
        }
    }
}

async fn run(endpoint: &str, limit: usize) -> Result<(), Box<dyn std::error::Error>> {
    let turns = Rc::new(Cell::new(0_u64));
    let other_work = tokio::task::spawn_local({
        let turns = Rc::clone(&turns);
        async move {
            let mut interval = tokio::time::interval(Duration::from_millis(1));
            loop {
                interval.tick().await;
                turns.set(turns.get() + 1);
            }
        }
    });
    let mut deliveries = Deliveries::new(Subscriber::connect([endpoint], &Settings::default())?)?;
    println!("waiting");
    let mut messages = 0;
    while messages < limit {
        match deliveries.next().await? {
            Delivery::Message(message) => {
                messages += 1;
                println!("message {}: {} events", message.sequence(), message.batch().len());
            }
            other => println!("{other:?}"),
        }
    }
    other_work.abort();
    println!("{messages} messages; the other task had {} turns", turns.get());
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let endpoint = arguments.next().unwrap_or("tcp://127.0.0.1:5557".into());
    let limit: usize = arguments.next().map_or(Ok(usize::MAX), |limit| limit.parse())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, run(&endpoint, limit))
}
