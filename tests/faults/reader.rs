//! A subscriber in a process of its own. It knows the contract and checks it at every message: numbers rise, ids are
//! dense, a message carries no two sides of a loss, no call is torn, nothing is missing that no gap told of. It keeps the
//! view that the stream describes, takes a snapshot whenever there was a gap, and compares it with the master at the end.

use crate::payload::{self, Event};
use crate::table::{KEYS, PRODUCERS, Table};
use crate::words::Words;
use std::time::{Duration, Instant};

/// Tenants of what is published for the bench's own sake.
pub const PROBE: &str = "probe";
pub const END: &str = "end";

pub fn main(words: &Words) {
    let socket = zmq::Context::new().socket(zmq::SUB).unwrap();
    socket.set_rcvhwm(words.number("hwm") as i32).unwrap();
    socket.set_subscribe(b"").unwrap();
    socket.connect(words.text("endpoint")).unwrap();
    let slow = Duration::from_micros(words.number("slow_us"));
    let slow_until = Instant::now() + Duration::from_millis(words.number("slow_ms"));
    let mut ledger = Ledger::new(Table::open(words.text("table").as_ref()), words.number("from_start") == 1);
    let mut joined = false;
    let mut frames: Vec<zmq::Message> = Vec::new();
    while !ledger.ended {
        receive(&socket, &mut frames);
        let [topic, sequence, payload] = &frames[..] else {
            ledger.wrong(format!("a message of {} frames", frames.len()));
            continue;
        };
        match <[u8; 8]>::try_from(&sequence[..]) {
            Ok(sequence) if topic.is_empty() => ledger.message(u64::from_be_bytes(sequence), payload),
            _ => ledger.wrong(format!("a topic of {} and a number of {} bytes", topic.len(), sequence.len())),
        }
        if !joined {
            joined = true;
            println!("joined");
        }
        if !slow.is_zero() && Instant::now() < slow_until {
            std::thread::sleep(slow);
        }
    }
    println!("{}", ledger.report());
}

fn receive(socket: &zmq::Socket, frames: &mut Vec<zmq::Message>) {
    frames.clear();
    loop {
        let mut frame = zmq::Message::new();
        socket.recv(&mut frame, 0).unwrap();
        let more = frame.get_more();
        frames.push(frame);
        if !more {
            return;
        }
    }
}

struct Ledger {
    table: Table,
    view: Vec<u8>,
    /// Number and timestamp of the last message.
    last: Option<(u64, u64)>,
    last_id: u64,
    /// The number of each producer's next event; `None` if it is not known.
    next: [Option<u64>; PRODUCERS],
    /// Producer and number of a call whose second event has to come next.
    twin: Option<(usize, u64)>,
    messages: u64,
    events: u64,
    gaps: u64,
    lost_on_the_way: u64,
    missing: u64,
    resyncs: u64,
    restarts: u64,
    ended: bool,
    wrong: Option<String>,
}

impl Ledger {
    fn new(table: Table, from_start: bool) -> Self {
        let next = [from_start.then_some(1); PRODUCERS];
        Ledger {
            view: table.copy(),
            table,
            last: None,
            last_id: 0,
            next,
            twin: None,
            messages: 0,
            events: 0,
            gaps: 0,
            lost_on_the_way: 0,
            missing: 0,
            resyncs: 0,
            restarts: 0,
            ended: false,
            wrong: None,
        }
    }

    fn wrong(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    fn message(&mut self, sequence: u64, bytes: &[u8]) {
        let mut events = Vec::with_capacity(64);
        let timestamp = match payload::read(bytes, |event| events.push(event)) {
            Ok(timestamp) => timestamp,
            Err(what) => return self.wrong(format!("message {sequence}: {what}")),
        };
        self.place(sequence, timestamp, events.first().map(|event| event.id));
        self.messages += 1;
        self.last = Some((sequence, timestamp));
        let mut seen = [false; PRODUCERS];
        for event in &events {
            self.event(sequence, event, &mut seen);
        }
        if self.twin.take().is_some() {
            self.wrong(format!("message {sequence} ends in the middle of a call"));
        }
        if self.missing > self.gaps + self.lost_on_the_way {
            self.wrong(format!(
                "by message {sequence} {} events are missing, gaps tell of {}",
                self.missing, self.gaps
            ));
        }
    }

    /// Where a message stands behind the one before it.
    fn place(&mut self, sequence: u64, timestamp: u64, first_id: Option<u64>) {
        let Some((last, last_timestamp)) = self.last else {
            self.last_id = first_id.map_or(0, |id| id - 1);
            return self.resync();
        };
        let ids_went_back = first_id.is_some_and(|id| id <= self.last_id);
        if ids_went_back || sequence <= last {
            if !ids_went_back && timestamp <= last_timestamp {
                return self.wrong(format!("message {sequence} comes after {last}"));
            }
            self.restarts += 1;
            println!("restarted");
            self.next = [None; PRODUCERS];
            self.last_id = first_id.map_or(0, |id| id - 1);
            return self.resync();
        }
        if timestamp < last_timestamp {
            self.wrong(format!("message {sequence} is of {timestamp}, the one before of {last_timestamp}"));
        }
        let gap = sequence - last - 1;
        let jump = first_id.map_or(0, |id| id - 1 - self.last_id);
        if jump > 0 && gap == 0 {
            self.wrong(format!("{jump} events were lost on the way to message {sequence}, and no gap tells of it"));
        }
        self.gaps += gap;
        self.lost_on_the_way += jump;
        if gap > 0 {
            self.resync();
        }
    }

    fn resync(&mut self) {
        self.resyncs += 1;
        self.view = self.table.copy();
    }

    fn event(&mut self, sequence: u64, event: &Event<'_>, seen: &mut [bool; PRODUCERS]) {
        self.events += 1;
        if self.last_id > 0 && event.id <= self.last_id || event.id > self.last_id + 1 && seen.contains(&true) {
            self.wrong(format!("message {sequence}: event {} comes after {}", event.id, self.last_id));
        }
        self.last_id = event.id;
        if event.cleared {
            self.ended |= event.tenant == END;
            if self.ended {
                self.compare();
            }
            return;
        }
        let Some((producer, first, of_call, slot)) = parse(event) else {
            return self.wrong(format!("message {sequence}: {event:?}"));
        };
        let number = match self.twin.take() {
            Some(twin) if twin == (producer, first) => first + 1,
            Some(_) => return self.wrong(format!("message {sequence}: a call is torn before {event:?}")),
            None => {
                self.twin = (of_call == 2).then_some((producer, first));
                first
            }
        };
        match self.next[producer] {
            Some(next) if number < next => self.wrong(format!("message {sequence}: {event:?} comes after {next}")),
            Some(next) if number > next && seen[producer] => {
                self.wrong(format!("message {sequence} carries both sides of the loss before {event:?}"));
            }
            Some(next) => self.missing += number - next,
            None => {}
        }
        seen[producer] = true;
        self.next[producer] = Some(number + 1);
        if event.stored {
            self.view[slot] |= event.medium;
        } else {
            self.view[slot] &= !event.medium;
        }
    }

    fn compare(&mut self) {
        let differing = (0..self.view.len()).filter(|slot| self.view[*slot] != self.table.get(*slot)).count();
        if differing > 0 {
            self.wrong(format!("the view differs from the master's in {differing} objects"));
        }
    }

    fn report(&self) -> String {
        let seen: u64 = self.next.iter().flatten().map(|next| next - 1).sum();
        format!(
            "report messages={} events={} gaps={} lost={} missing={} seen={seen} resyncs={} restarts={} last={} wrong={}",
            self.messages,
            self.events,
            self.gaps,
            self.lost_on_the_way,
            self.missing,
            self.resyncs,
            self.restarts,
            self.last.map_or(0, |(sequence, _)| sequence),
            self.wrong.as_deref().unwrap_or("").replace(' ', "_"),
        )
    }
}

/// Producer, number of the call's first event, events in the call, and the object's slot.
fn parse(event: &Event<'_>) -> Option<(usize, u64, u64, usize)> {
    let mut group = event.group.split(':').map(str::parse::<u64>);
    let [producer, first, of_call] = [(); 3].map(|()| group.next().and_then(Result::ok));
    let producer = usize::try_from(producer?).ok().filter(|producer| *producer < PRODUCERS)?;
    let slot: usize = event.key.rsplit('/').next()?.parse().ok()?;
    (slot / KEYS == producer).then_some((producer, first?, of_call?, slot))
}
