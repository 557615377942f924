//! What the types forbid, each beside a twin that differs in nothing else and compiles. They are doctests, as those need no
//! compiler's exact words; `.ci/public_api` has the error codes compared too, which a stable rustdoc leaves alone.

/// One mutation is published once.
///
/// ```no_run
/// # use kv_events::{Before, MediaSet, Object, Publisher};
/// # let (publisher, object) = (Publisher::disabled(), Object::new("t", "k"));
/// let before = Before::mutation(MediaSet::CPU);
/// publisher.removed(&object, before);
/// ```
///
/// ```compile_fail,E0382
/// # use kv_events::{Before, MediaSet, Object, Publisher};
/// # let (publisher, object) = (Publisher::disabled(), Object::new("t", "k"));
/// let before = Before::mutation(MediaSet::CPU);
/// publisher.removed(&object, before);
/// publisher.removed(&object, before);
/// ```
///
/// Nor is it copied, to be published twice.
///
/// ```compile_fail,E0599
/// # use kv_events::{Before, MediaSet, Object, Publisher};
/// # let (publisher, object) = (Publisher::disabled(), Object::new("t", "k"));
/// let before = Before::mutation(MediaSet::CPU);
/// publisher.removed(&object, before.clone());
/// ```
///
/// And what was there before has to be said as such.
///
/// ```compile_fail,E0308
/// # use kv_events::{Before, MediaSet, Object, Publisher};
/// # let (publisher, object) = (Publisher::disabled(), Object::new("t", "k"));
/// let before = MediaSet::CPU;
/// publisher.removed(&object, before);
/// ```
mod a_mutation {}

/// A sweep ends once.
///
/// ```no_run
/// # use kv_events::Publisher;
/// # let publisher = Publisher::disabled();
/// let sweep = publisher.sweep("t");
/// sweep.skipped();
/// sweep.finish();
/// drop(publisher);
/// ```
///
/// ```compile_fail,E0382
/// # use kv_events::Publisher;
/// # let publisher = Publisher::disabled();
/// let sweep = publisher.sweep("t");
/// sweep.skipped();
/// sweep.finish();
/// sweep.finish();
/// drop(publisher);
/// ```
mod a_sweep {}

/// What must not go unseen is not dropped without a word, where warnings count.
///
/// ```no_run
/// #![deny(unused_must_use)]
/// # use kv_events::{Before, MediaSet, Publisher};
/// # let publisher = Publisher::disabled();
/// let sweep = publisher.sweep("t");
/// sweep.finish();
/// Before::mutation(MediaSet::CPU).discard();
/// let report = publisher.stop(std::time::Duration::ZERO);
/// assert!(report.closed);
/// ```
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # use kv_events::Publisher;
/// # let publisher = Publisher::disabled();
/// publisher.sweep("t");
/// ```
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # use kv_events::{Before, MediaSet};
/// Before::mutation(MediaSet::CPU);
/// ```
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # use kv_events::Publisher;
/// # let publisher = Publisher::disabled();
/// publisher.stop(std::time::Duration::ZERO);
/// ```
mod silence {}

/// A subscriber has one reader, which may change threads but not be two.
///
/// ```no_run
/// # use kv_events::subscriber::{Settings, Subscriber};
/// # let mut subscriber = Subscriber::connect(["tcp://127.0.0.1:5557"], &Settings::default()).unwrap();
/// std::thread::scope(|scope| scope.spawn(move || subscriber.recv().is_ok()).join().unwrap());
/// ```
///
/// ```compile_fail,E0277
/// # use kv_events::subscriber::{Settings, Subscriber};
/// # let mut subscriber = Subscriber::connect(["tcp://127.0.0.1:5557"], &Settings::default()).unwrap();
/// std::thread::scope(|scope| scope.spawn(|| subscriber.wake_at().is_some()).join().unwrap());
/// ```
///
/// ```compile_fail,E0499
/// # use kv_events::subscriber::{Settings, Subscriber};
/// # let mut subscriber = Subscriber::connect(["tcp://127.0.0.1:5557"], &Settings::default()).unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| subscriber.recv().is_ok());
///     scope.spawn(|| subscriber.recv().is_ok());
/// });
/// ```
#[cfg(all(feature = "zmq", unix))]
mod a_subscriber {}

/// A decoded event borrows from its payload; its owned form does not.
///
/// ```no_run
/// # use kv_events::decode::Event;
/// # let payload = vec![0x91_u8, 0xa0];
/// let event = Event::parse(&payload).unwrap().into_owned();
/// drop(payload);
/// println!("{event:?}");
/// ```
///
/// ```compile_fail,E0505
/// # use kv_events::decode::Event;
/// # let payload = vec![0x91_u8, 0xa0];
/// let event = Event::parse(&payload).unwrap();
/// drop(payload);
/// println!("{event:?}");
/// ```
mod an_event {}

/// What may grow is matched with a rest, what may not is matched whole.
///
/// ```no_run
/// # use kv_events::{Medium, Outcome};
/// # fn of(outcome: Outcome, medium: Medium) -> bool {
/// let dropped = match outcome {
///     Outcome::Accepted { .. } | Outcome::Nothing => false,
///     Outcome::Suppressed { .. } | Outcome::Refused(_) | Outcome::Disabled => true,
///     _ => true,
/// };
/// dropped && match medium { Medium::Cpu => true, Medium::Disk => false }
/// # }
/// ```
///
/// ```compile_fail,E0004
/// # use kv_events::{Medium, Outcome};
/// # fn of(outcome: Outcome, medium: Medium) -> bool {
/// let dropped = match outcome {
///     Outcome::Accepted { .. } | Outcome::Nothing => false,
///     Outcome::Suppressed { .. } | Outcome::Refused(_) | Outcome::Disabled => true,
/// };
/// dropped && match medium { Medium::Cpu => true, Medium::Disk => false }
/// # }
/// ```
mod what_grows {}
