"""Publishes five streams side by side, each as some producer does, with the libraries they use: pyzmq and msgspec.

Prints their endpoints as one JSON object, waits until each has a subscriber, sends, and prints what was sent: one JSON
object a line, {"stream", "topic", "sequence", "events"} with an event's kind and what it is about, or {"stream",
"restart": true}.
"""

import json
import struct
import sys
import time

import msgspec
import zmq

CONTEXT = zmq.Context()
HOUR = 3600


class Stream:
    def __init__(self, name):
        self.name = name
        self.open("tcp://127.0.0.1:*")

    def open(self, endpoint):
        self.socket = CONTEXT.socket(zmq.XPUB)
        self.socket.linger = 0
        deadline = time.monotonic() + 60
        while True:
            try:
                self.socket.bind(endpoint)
                break
            except zmq.ZMQError:
                assert time.monotonic() < deadline, f"{endpoint} does not become free"
                time.sleep(0.01)
        self.endpoint = self.socket.last_endpoint.decode()

    def await_subscriber(self):
        assert self.socket.poll(60_000), f"nobody subscribes to {self.name}"
        self.socket.recv()

    def restart(self):
        self.socket.close()
        self.open(self.endpoint)
        self.await_subscriber()
        print(json.dumps({"stream": self.name, "restart": True}), flush=True)

    def send(self, sequence, batch, events, topic=""):
        self.socket.send_multipart([topic.encode(), struct.pack(">Q", sequence), msgspec.msgpack.encode(batch)])
        said = {"stream": self.name, "topic": topic, "sequence": sequence, "events": events}
        print(json.dumps(said), flush=True)


def vllm(stream):
    """Typed arrays."""
    for n in range(50):
        stored = ["BlockStored", [n, 2**63 + n], None, [1, 2, 3, 4], 4, None, "GPU", None]
        removed = ["BlockRemoved", [n], "GPU"]
        stream.send(n, [time.time(), [stored, removed], 0], [["stored", [n, 2**63 + n]], ["removed", [n]]], "kv-events")


def sglang(stream):
    """Maps in an array."""
    for n in range(50):
        stored = {
            "type": "BlockStored", "block_hashes": [-n - 1], "parent_block_hash": None, "token_ids": [n],
            "block_size": 1, "lora_id": None, "medium": "GPU",
        }
        events = [["stored", [2**64 - n - 1]]]
        batch = [time.time(), [stored], 0]
        if n % 10 == 9:
            batch[1].append({"type": "AllBlocksCleared"})
            events.append(["cleared", []])
        stream.send(n, batch, events, "kv-events")


def master(stream):
    """A store's, whose newer version names sessions."""
    number = 1
    for n in range(1, 51):
        ms = int(time.time() * 1000)
        event = {
            "event_id": n, "timestamp": ms, "event_type": "stored", "type": "BlockStored", "model_name": None,
            "block_size": None, "additional_salt": None, "lora_name": None, "tenant_id": "default",
            "backend_id": "b", "medium": "cpu", "dp_rank": 0, "group_id": None, "object_key": f"k{n}",
            "seq_hashes": [], "block_hashes": [], "session_id": f"s{n}", "base_block_idx": None, "parent_hash": None,
            "token_ids": None, "parent_block_hash": None,
        }
        # Ten events were evicted before the 25th message was sent.
        number += 10 if n == 25 else 0
        stream.send(number, [ms, [event], 0], [["stored", [f"k{n}", f"s{n}"]]])
        number += 1


def shared(stream):
    """One counter over thirty topics."""
    for n in range(300):
        batch = [time.time(), [["BlockRemoved", [n], None]]]
        stream.send(n, batch, [["removed", [n]]], f"t{n * 7919 % 30}")


def behind(stream):
    """Begins anew with its clock an hour behind."""
    for life in range(2):
        for n in range(400):
            batch = [time.time() - life * HOUR, [["BlockRemoved", [life * 1000 + n], None]]]
            stream.send(n, batch, [["removed", [life * 1000 + n]]])
        if life == 0:
            # Not before the reader has said that it has it all.
            assert sys.stdin.readline()
            stream.restart()


def main():
    streams = [(send, Stream(send.__name__)) for send in [vllm, sglang, master, shared, behind]]
    print(json.dumps({stream.name: stream.endpoint for _, stream in streams}), flush=True)
    for send, stream in streams:
        stream.await_subscriber()
    for send, stream in streams:
        send(stream)
    print(json.dumps({"end": True}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
