//! The smallest master: a map of objects, and a publisher that tells what becomes of them.
//!
//! `cargo run --example embed`, and in another terminal `kv-events tail tcp://127.0.0.1:5557`.
//! An endpoint of your own comes as the first argument, the number of rounds as the second.

use kv_events::{Before, Config, MediaSet, Object, Publisher, StartError};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

struct Master {
    objects: Mutex<HashMap<String, MediaSet>>,
    publisher: Publisher,
}

impl Master {
    fn put(&self, key: &str) {
        let mut objects = self.objects.lock().unwrap();
        objects.insert(key.to_owned(), MediaSet::CPU);
        self.publisher.committed(&Object::new("demo", key), MediaSet::CPU); // under the same lock
    }

    fn offload(&self, key: &str) {
        let mut objects = self.objects.lock().unwrap();
        let Some(media) = objects.get_mut(key) else { return };
        let before = Before::mutation(*media);
        *media = MediaSet::DISK;
        self.publisher.changed(&Object::new("demo", key), before, *media);
    }

    /// Removes everything but what `is_leased`. Only if nothing is left does `cleared` follow.
    fn remove_all(&self, is_leased: impl Fn(&str) -> bool) {
        let sweep = self.publisher.sweep("demo"); // before the lock is taken
        self.objects.lock().unwrap().retain(|key, media| {
            if is_leased(key) {
                sweep.skipped();
                return true;
            }
            sweep.removed(&Object::new("demo", key), Before::mutation(*media));
            false
        });
        sweep.finish();
    }
}

fn main() -> Result<(), StartError> {
    let mut arguments = std::env::args().skip(1);
    let endpoint = arguments.next().unwrap_or("tcp://127.0.0.1:5557".into());
    let rounds: u32 = arguments.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(60);
    let publisher = Publisher::start(Config::new(endpoint, "embed-example"))?;
    println!("publishing on {}", publisher.bound_endpoint().unwrap_or("nothing: built without `zmq`"));

    let master = Master { objects: Mutex::default(), publisher };
    for round in 0..rounds {
        for n in 0..3 {
            master.put(&format!("block-{round}-{n}"));
        }
        master.offload(&format!("block-{round}-0"));
        if round % 10 == 9 {
            master.remove_all(|key| round % 20 == 9 && key.ends_with("-2"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("{:?}", master.publisher.stop(Duration::from_secs(5)));
    Ok(())
}
