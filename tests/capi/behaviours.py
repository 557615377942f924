"""Reads the streams of behaviours.cpp and holds them against what it prints.

usage: behaviours.py [--repeat N] [--blind MS] PROGRAM

With --blind the program does not wait until this subscriber has heard something: it waits so many ms after this has begun to
connect, as tests with a fixed wait do. What is lost on that account is counted, and is no failure.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time

import msgspec
import zmq

TIMEOUT_MS = 120_000
CONTEXT = {
    "model_name": "model",
    "block_size": 16,
    "additional_salt": "salt",
    "lora_name": "lora",
    "backend_id": "backend",
    "dp_rank": 3,
}
OF_OBJECTS = {"group_id", "object_key", "seq_hashes", "block_hashes", "base_block_idx"}
LEGACY = {"stored": "BlockStored", "removed": "BlockRemoved", "cleared": "AllBlocksCleared"}


class Failure(Exception):
    pass


class Stream:
    """The messages of one publisher, each with the numbers that are missing before it."""

    def __init__(self, endpoint, timeout_ms):
        self.socket = zmq.Context.instance().socket(zmq.SUB)
        self.socket.setsockopt(zmq.RCVHWM, 0)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.SUBSCRIBE, b"")
        self.socket.setsockopt(zmq.RCVTIMEO, timeout_ms)
        self.socket.connect(endpoint)
        self.sequence = None
        self.until = time.monotonic() + timeout_ms / 1000

    def message(self):
        # Heartbeats come for ever.
        if time.monotonic() > self.until:
            raise Failure("the end did not come")
        topic, sequence, payload = self.socket.recv_multipart()
        sequence = int.from_bytes(sequence, "big")
        missing = 0 if self.sequence is None else sequence - self.sequence - 1
        if topic != b"" or missing < 0:
            raise Failure(f"topic {topic}, number {sequence} after {self.sequence}")
        self.sequence = sequence
        timestamp, events, rank = msgspec.msgpack.decode(payload)
        for event in events:
            if rank != CONTEXT["dp_rank"] or event["timestamp"] != timestamp:
                raise Failure(f"rank {rank}, timestamp {timestamp} and {event}")
        return missing, events


def seen(event, legacy):
    """What `expect` says of it, once its shape is known to be right."""
    kind = event["event_type"]
    wrong = {key: event.get(key) for key, value in CONTEXT.items() if event.get(key) != value}
    fields = set(event) & OF_OBJECTS
    meant = set() if kind == "cleared" else OF_OBJECTS if legacy else OF_OBJECTS - {"block_hashes"}
    if wrong or fields != meant or event.get("type") != (LEGACY[kind] if legacy else None):
        raise Failure(f"the shape of {event}")
    if kind == "cleared" and (event["medium"] is not None or "medium" not in event):
        raise Failure(f"a medium in {event}")
    if kind != "cleared" and (event["seq_hashes"] or event["base_block_idx"] is not None):
        raise Failure(f"a parsed key in {event}")
    if kind == "stored" and ("token_ids" not in event or "parent_hash" not in event):
        raise Failure(f"no token_ids or parent_hash in {event}")
    return (kind, event["medium"] or "-", event["tenant_id"], event.get("object_key", ""), event.get("group_id") or "")


def case(name, program, stream):
    """Checks one behaviour; its name and endpoint have been read."""
    calls, overflow, legacy = [], None, name != "without-legacy-names"
    for line in iter(program.stdout.readline, "said\n"):
        what, *rest = line.split(" ")
        if what == "call":
            calls.append([])
        elif what == "expect":
            kind, medium, tenant, key, group = rest
            calls[-1].append((kind, medium, tenant, bytes.fromhex(key).decode(), group.rstrip("\n")))
        elif what == "overflow":
            overflow = int(rest[0])
        else:
            raise Failure(f"the program said {line!r}")
    gap, keys = 0, []
    while True:
        missing, events = stream.message()
        events = [seen(event, legacy) for event in events]
        if any(event[2] != "probe" for event in events):
            gap += missing
        events = [event for event in events if event[2] != "probe"]
        over = bool(events) and events[-1][2] == "end"
        events = events[:-1] if over else events
        keys += [int(event[3]) for event in events if event[2] == "overflow"]
        events = [event for event in events if event[2] != "overflow"]
        while events:
            call = calls.pop(0) if calls else []
            if not call or events[: len(call)] != call:
                raise Failure(f"{events} came, {call} was meant")
            events = events[len(call) :]
        if over:
            break
    if calls:
        raise Failure(f"{calls} did not come")
    if overflow is None and gap != 0:
        raise Failure(f"a gap of {gap}")
    if overflow is not None and (keys != sorted(keys) or gap != overflow - len(keys) or gap == 0):
        raise Failure(f"a gap of {gap}, {overflow} calls, of which came {keys}")


def run(path, blind):
    """Runs the program once; returns how many cases it had, and how many lost their beginning to a blind wait."""
    cases = lost = 0
    with tempfile.TemporaryDirectory() as directory:
        arguments = [path, directory] + ([] if blind is None else [str(blind)])
        program = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        watchdog = threading.Timer(2 * TIMEOUT_MS / 1000, program.kill)
        watchdog.start()
        try:
            for line in iter(program.stdout.readline, "end\n"):
                what, name, endpoint = (line.split() + ["", "", ""])[:3]
                if what != "case":
                    raise Failure(f"the program said {line!r}")
                cases += 1
                stream = Stream(endpoint, TIMEOUT_MS if blind is None else 2000)
                if blind is not None:
                    stream.sequence = 0  # all that it sends is meant to arrive
                try:
                    if blind is None:
                        stream.message()
                    program.stdin.write("heard\n" if blind is None else "connect\n")
                    program.stdin.flush()
                    case(name, program, stream)
                except (Failure, zmq.Again) as error:
                    if blind is None:
                        raise Failure(f"{name}: {error!r}") from error
                    lost += 1
                    print(f"{name}: {error!r}", flush=True)
                stream.socket.close()
                program.stdin.write("done\n")
                program.stdin.flush()
            if program.wait(TIMEOUT_MS / 1000) != 0:
                raise Failure(f"the program ended with {program.returncode}")
        finally:
            watchdog.cancel()
            program.kill()
            program.wait()
    return cases, lost


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--blind", type=int)
    parser.add_argument("program")
    options = parser.parse_args()
    cases = lost = 0
    for i in range(options.repeat):
        try:
            more, missed = run(options.program, options.blind)
        except Failure as failure:
            sys.exit(f"behaviours.py: run {i + 1}: {failure}")
        cases, lost = cases + more, lost + missed
    if cases == 0:
        sys.exit("behaviours.py: there was no case")
    print(f"{options.program}: {cases} cases in {options.repeat} runs, {lost} lost their beginning")


main()
