//! A publisher and its readers, each in a process of its own, and what has to be true of them in the end.

use crate::child::{Child, HANG};
use crate::table::Table;
use crate::words::Words;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// What a publisher is to do.
#[derive(Clone, Debug)]
pub struct Load {
    pub producers: usize,
    /// Calls a second of all producers together; 0 for as many as they can.
    pub rate: u64,
    pub capacity: usize,
    pub burst: usize,
    pub hwm: u32,
    pub key_bytes: usize,
}

impl Default for Load {
    fn default() -> Self {
        Load { producers: 3, rate: 60_000, capacity: 65_536, burst: 16, hwm: 0, key_bytes: 60 }
    }
}

/// How a reader reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// Pause after each message, us, for the first `slow_ms`.
    pub slow_us: u64,
    pub slow_ms: u64,
    /// Receive high-water mark; 0 for none.
    pub hwm: u32,
}

pub struct Rig {
    pub publisher: Child,
    pub endpoint: String,
    pub sender: u32,
    pub producers: Vec<u32>,
    pub readers: Vec<Child>,
    /// Those that were there from the start, to which nothing was done.
    complete: Vec<Child>,
    table: Table,
    load: Load,
    restarted: bool,
    going: bool,
}

/// What a run came to.
#[derive(Debug, Default)]
pub struct Outcome {
    pub publisher: Words,
    pub complete: Vec<Words>,
    pub readers: Vec<Words>,
}

impl Rig {
    /// A publisher with `complete` readers that it has shaken hands with; its producers wait.
    pub fn start(load: Load, complete: usize) -> Result<Rig, String> {
        static TABLES: AtomicU32 = AtomicU32::new(0);
        let name = format!("kv-events-faults-{}-{}", std::process::id(), TABLES.fetch_add(1, Ordering::Relaxed));
        let table = Table::create(std::env::temp_dir().join(name));
        let (publisher, words) = spawn_publisher("tcp://127.0.0.1:0", &load, &table)?;
        let mut rig = Rig {
            endpoint: words.text("endpoint").to_owned(),
            sender: words.number("sender") as u32,
            producers: tids(words.text("producers")),
            publisher,
            readers: Vec::new(),
            complete: Vec::new(),
            table,
            load,
            restarted: false,
            going: false,
        };
        for _ in 0..complete {
            let reader = rig.spawn_reader(Reading { hwm: rig.load.hwm, ..Reading::default() }, true);
            reader.wait_for("joined")?;
            rig.complete.push(reader);
        }
        Ok(rig)
    }

    fn spawn_reader(&self, reading: Reading, from_start: bool) -> Child {
        let Reading { slow_us, slow_ms, hwm } = reading;
        let (endpoint, table, from_start) = (&self.endpoint, self.table.path().display(), u8::from(from_start));
        Child::spawn(
            "reader",
            &format!(
                "endpoint={endpoint} table={table} hwm={hwm} slow_us={slow_us} slow_ms={slow_ms} from_start={from_start}"
            ),
        )
    }

    /// Adds a reader; returns when it has received its first message.
    pub fn join(&mut self, reading: Reading) -> Result<(), String> {
        let reader = self.spawn_reader(reading, !self.going);
        reader.wait_for("joined")?;
        self.readers.push(reader);
        Ok(())
    }

    pub fn go(&mut self) {
        self.publisher.tell("go");
        self.going = true;
    }

    /// Lets the load run for `time`, and on until the publisher has settled so many events, or evicted so many: a row that
    /// ends before its load has begun has tried nothing.
    pub fn work(&mut self, time: Duration, settled: u64, evicted: u64) -> Result<(), String> {
        run_for(time);
        let until = Instant::now() + HANG;
        loop {
            self.publisher.tell("progress");
            let words = self.publisher.wait_for("progress")?;
            if words.number("settled") >= settled && words.number("evicted") >= evicted {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("too little came about: {words:?}, least {settled} settled, {evicted} evicted"));
            }
            run_for(Duration::from_millis(20));
        }
    }

    /// Ends the publisher's process with SIGKILL and starts another on the same endpoint.
    pub fn kill_and_restart(&mut self) -> Result<(), String> {
        let (endpoint, load) = (self.endpoint.clone(), self.load.clone());
        self.publisher.signal(libc::SIGKILL);
        self.publisher.wait_for("gone").err();
        self.replace(&endpoint, &load)
    }

    /// Stops the publisher in order and starts another on the same endpoint.
    pub fn stop_and_restart(&mut self) -> Result<(), String> {
        check_publisher(&self.end()?)?;
        let (endpoint, load) = (self.endpoint.clone(), self.load.clone());
        self.replace(&endpoint, &load)
    }

    fn replace(&mut self, endpoint: &str, load: &Load) -> Result<(), String> {
        let (publisher, words) = spawn_publisher(endpoint, load, &self.table)?;
        self.publisher = publisher;
        self.sender = words.number("sender") as u32;
        self.producers = tids(words.text("producers"));
        self.restarted = true;
        // Not before readers have found it: one that comes late finds numbers that have overtaken the old ones, which look
        // like a gap, and no number tells that they are not.
        for reader in &self.complete {
            reader.wait_for("restarted")?;
        }
        self.publisher.tell("go");
        Ok(())
    }

    /// Ends the publisher, and returns its report as it is.
    pub fn end(&mut self) -> Result<Words, String> {
        self.publisher.tell("leave");
        self.publisher.wait_for("report")
    }

    /// Lets all come to rest, collects the reports and checks them.
    pub fn finish(mut self) -> Result<Outcome, String> {
        self.publisher.tell("finish");
        self.publisher.wait_for("idle")?;
        let complete = self.complete.iter().map(|reader| reader.wait_for("report")).collect::<Result<Vec<_>, _>>()?;
        let readers = self.readers.iter().map(|reader| reader.wait_for("report")).collect::<Result<Vec<_>, _>>()?;
        self.publisher.tell("quit");
        let publisher = self.publisher.wait_for("report")?;
        check_publisher(&publisher)?;
        for reader in complete.iter().chain(&readers) {
            check_reader(reader)?;
        }
        if !self.restarted && self.load.hwm == 0 {
            for reader in &complete {
                check_complete(reader, &publisher)?;
            }
        }
        Ok(Outcome { publisher, complete, readers })
    }
}

fn tids(list: &str) -> Vec<u32> {
    list.split(',').filter_map(|tid| tid.parse().ok()).collect()
}

fn spawn_publisher(endpoint: &str, load: &Load, table: &Table) -> Result<(Child, Words), String> {
    let Load { producers, rate, capacity, burst, hwm, key_bytes } = load;
    let table = table.path().display();
    let publisher = Child::spawn(
        "master",
        &format!(
            "endpoint={endpoint} table={table} producers={producers} rate={rate} capacity={capacity} burst={burst} \
             hwm={hwm} key_bytes={key_bytes} event_bytes={}",
            key_bytes + 4096
        ),
    );
    let words = publisher.wait_for("ready")?;
    Ok((publisher, words))
}

fn expect(what: &str, left: u64, right: u64, words: &Words) -> Result<(), String> {
    if left == right { Ok(()) } else { Err(format!("{what}: {left} against {right}; {words:?}")) }
}

/// Conservation, the sequence rule, an end without a hang.
fn check_publisher(words: &Words) -> Result<(), String> {
    let number = |name| words.number(name);
    let settled = number("published") + number("evicted") + number("failed") + number("abandoned");
    expect("accepted = published + evicted + failed + abandoned", number("accepted"), settled, words)?;
    let numbered = number("messages") + number("evicted") + number("failed");
    expect("last number = messages + evicted + failed", number("last"), numbered, words)?;
    for name in ["idle", "closed", "healthy"] {
        expect(name, number(name), 1, words)?;
    }
    Ok(())
}

/// What every reader can see for itself.
fn check_reader(words: &Words) -> Result<(), String> {
    match words.text("wrong") {
        "" => Ok(()),
        wrong => Err(wrong.replace('_', " ")),
    }
}

/// What must be true of a reader that nothing was done to: nothing was lost on the way, every gap is an eviction or a
/// failed send, and every event that is missing is in a gap.
fn check_complete(reader: &Words, publisher: &Words) -> Result<(), String> {
    let lost = publisher.number("evicted") + publisher.number("failed");
    expect("lost on the way", reader.number("lost"), 0, reader)?;
    expect("gaps = evicted + failed", reader.number("gaps"), lost, reader)?;
    // A producer's last events may be lost as well, and then no later event of its shows it.
    let missing = reader.number("missing") + publisher.number("made") - reader.number("seen");
    expect("events missing = evicted + failed", missing, lost, reader)
}

/// Waits while the load runs.
pub fn run_for(time: Duration) {
    std::thread::sleep(time);
}
