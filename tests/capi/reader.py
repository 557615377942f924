"""Runs a test program that publishes, and checks the stream it sends against what it says it sends.

usage: reader.py PROGRAM [ARGUMENT...]

The shape of each event is not its business: `tests/python/subscriber.py` listens as well and looks at that.

The program prints `endpoint E`, then publishes `cleared` events of the tenant `probe` until a line on its standard input
says that one has arrived, then prints an `expect` or a `series` line for every event (see check.h) and publishes, last a
`cleared` of the tenant `end`.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import zmq

SUBSCRIBER = Path(__file__).parent.parent / "python/subscriber.py"
# More under valgrind.
TIMEOUT_S = int(os.environ.get("KV_EVENTS_READER_SECONDS", "60"))
FIXED = {
    "model_name": "model",
    "block_size": 16,
    "additional_salt": "salt",
    "lora_name": "lora",
    "backend_id": "backend",
    "dp_rank": 3,
}


def fail(text):
    sys.exit(f"reader.py: {text}")


class Stream:
    """The events of a SUB socket, with the framing and the numbering checked."""

    def __init__(self, endpoint):
        self.socket = zmq.Context.instance().socket(zmq.SUB)
        self.socket.setsockopt(zmq.RCVHWM, 0)
        self.socket.setsockopt(zmq.SUBSCRIBE, b"")
        self.socket.setsockopt(zmq.RCVTIMEO, TIMEOUT_S * 1000)
        self.socket.connect(endpoint)
        self.sequence = self.event_id = None

    def batch(self):
        frames = self.socket.recv_multipart()
        if len(frames) != 3 or frames[0] != b"" or len(frames[1]) != 8:
            fail(f"not a message: {frames}")
        sequence = int.from_bytes(frames[1], "big")
        if self.sequence is not None and sequence != self.sequence + 1:
            fail(f"gap from {self.sequence} to {sequence}")
        self.sequence = sequence
        timestamp, events, dp_rank = msgspec.msgpack.decode(frames[2])
        if dp_rank != FIXED["dp_rank"]:
            fail(f"rank of the batch is {dp_rank}")
        for event in events:
            if self.event_id is not None and event["event_id"] != self.event_id + 1:
                fail(f"event id {event['event_id']} after {self.event_id}")
            self.event_id = event["event_id"]
            wrong = {key: event.get(key) for key, value in FIXED.items() if event.get(key) != value}
            if wrong or event["timestamp"] != timestamp or "type" in event:
                fail(f"wrong in {event}: {wrong}")
        return events


def told(lines):
    """What the program says it sends."""
    ordered, series, session = [], {}, None
    for line in lines:
        what, *rest = line.split(" ")
        if what == "session":
            (session,) = rest
        elif what == "expect":
            kind, medium, tenant, key, group = rest
            ordered.append((kind, medium, tenant, bytes.fromhex(key).decode(), group, session))
            session = None
        elif what == "series":
            kind, medium, tenant, prefix, count = rest
            series[prefix] = [(kind, medium, tenant, f"{prefix}/{i}", "", None) for i in range(int(count))]
        else:
            fail(f"the program said {line!r}")
    return ordered, series


def run(argv, **pipes):
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, **pipes)


def check(program, started):
    """Reads what `program` sends; every other process begun goes into `started`."""
    first = program.stdout.readline().rstrip("\n")
    if not first.startswith("endpoint "):
        fail(f"the program began with {first!r}")
    lines = []
    listener = threading.Thread(target=lambda: lines.extend(line.rstrip("\n") for line in program.stdout))
    listener.start()
    endpoint = first.removeprefix("endpoint ")
    subscriber = run([sys.executable, SUBSCRIBER, endpoint, "rfc"])
    started.append(subscriber)
    stream = Stream(endpoint)
    events = stream.batch()
    if subscriber.stdout.readline() != "ready\n":
        fail("the subscriber does not get ready")
    program.stdin.write("heard\n")
    program.stdin.flush()
    received = []
    while not any(event["tenant_id"] == "end" for event in events):
        events = stream.batch()
        received += (event for event in events if event["tenant_id"] not in ("probe", "end"))
    if program.wait(TIMEOUT_S) != 0:
        fail(f"the program ended with {program.returncode}")
    listener.join()

    ordered, series = told(lines)
    for event in received:
        seen = (
            event["event_type"],
            event["medium"] or "-",
            event["tenant_id"],
            event.get("object_key", ""),
            event.get("group_id") or "",
            event.get("session_id"),
        )
        queue = series.get(seen[3].rpartition("/")[0], ordered)
        if not queue or queue.pop(0) != seen:
            fail(f"{seen} was not to come here")
    missing = ordered + [event for queue in series.values() for event in queue]
    if missing or not received:
        fail(f"{len(missing)} events did not come, first {missing[:1]}")
    report = subscriber.stdout.read()
    if subscriber.wait(TIMEOUT_S) != 0:
        fail("the subscriber found fault with an event")
    report = json.loads(report)
    if report["missed"] != 0 or sum(report["seen"].values()) != len(received) + 1:
        fail(f"the subscriber saw something else: {report}")
    print(f"{sys.argv[1]}: all {len(received)} events came, in order")


def main():
    started = [run(sys.argv[1:], stdin=subprocess.PIPE)]
    watchdog = threading.Timer(3 * TIMEOUT_S, lambda: [process.kill() for process in started])
    watchdog.daemon = True
    watchdog.start()
    try:
        check(started[0], started)
    finally:
        for process in started:
            process.kill()


main()
