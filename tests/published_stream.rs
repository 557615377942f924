//! The publisher on a real TCP socket, seen by a raw SUB socket.
#![cfg(feature = "zmq")]

use kv_events::{Before, Config, MediaSet, Object, Publisher};
use std::time::Duration;

#[test]
fn smoke() {
    let publisher = Publisher::start(Config::new("tcp://127.0.0.1:0", "b")).unwrap();
    let context = zmq::Context::new();
    let sub = context.socket(zmq::SUB).unwrap();
    sub.set_rcvtimeo(10_000).unwrap();
    sub.set_subscribe(b"").unwrap();
    sub.connect(publisher.bound_endpoint().unwrap()).unwrap();
    sub.set_rcvtimeo(50).unwrap();
    loop {
        publisher.cleared("probe");
        if sub.recv_multipart(0).is_ok() {
            break;
        }
    }
    sub.set_rcvtimeo(10_000).unwrap();
    let object = Object::new("", "key").in_group("g");
    publisher.committed(&object, MediaSet::BOTH);
    publisher.changed(&object, Before::mutation(MediaSet::CPU), MediaSet::DISK);
    let report = publisher.stop(Duration::from_secs(5));
    println!("{report:?} {:#?}", publisher.status());
    assert!(report.closed);
    let frames = sub.recv_multipart(0).unwrap();
    println!("{:?} {:?}", frames[1], String::from_utf8_lossy(&frames[2]));
}
