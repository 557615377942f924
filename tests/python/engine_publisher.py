"""Publishes as engines do, with the libraries that engines use: pyzmq and msgspec.

Prints its endpoint, waits until somebody subscribes, sends its script, and prints what it has sent: one JSON object a
line, {"sequence", "timestamp", "rank", "events"} with every event as [kind, hashes], or {"restart": true}.
"""

import json
import sys
from typing import Optional, Union

import msgspec
import zmq


class Event(msgspec.Struct, array_like=True, omit_defaults=True, gc=False, tag=True):
    """Base of the positional shape."""


class BlockStored(Event):
    block_hashes: list[Union[bytes, int]]
    parent_block_hash: Optional[Union[bytes, int]]
    token_ids: list[int]
    block_size: int
    lora_id: Optional[int]
    medium: Optional[str] = None


class BlockRemoved(Event):
    block_hashes: list[Union[bytes, int]]
    medium: Optional[str] = None


class AllBlocksCleared(Event):
    pass


class MapEvent(msgspec.Struct, omit_defaults=True, gc=False, tag=True):
    """Base of the map shape."""


class MapStored(MapEvent, tag="BlockStored"):
    block_hashes: list[Union[bytes, int]]
    parent_block_hash: Optional[Union[bytes, int]]
    token_ids: list[int]
    block_size: int
    lora_id: Optional[int] = None
    medium: Optional[str] = None
    group_idx: Optional[int] = None


class MapRemoved(MapEvent, tag="BlockRemoved"):
    block_hashes: list[Union[bytes, int]]
    medium: Optional[str] = None


class ShortBatch(msgspec.Struct, array_like=True, gc=False):
    ts: float
    events: list


class Batch(msgspec.Struct, array_like=True, gc=False):
    ts: float
    events: list
    data_parallel_rank: Optional[int] = None


def stored(hashes, cls=BlockStored):
    return cls(hashes, None, list(range(16 * len(hashes))), 16, lora_id=None, medium="GPU")


def script():
    """(sequence, batch); None where the engine begins anew."""
    hashes = [0x8000_0000_0000_0001, 7, b"\x01" * 32]
    yield 0, ShortBatch(1000.25, [stored(hashes)])
    yield 1, ShortBatch(1000.5, [stored([11], MapStored), MapRemoved([7], "GPU")])
    yield 2, Batch(1000.75, [BlockRemoved([11]), stored([12], MapStored)], 3)
    # 3 and 4 are never sent.
    yield 5, Batch(1001.0, [stored([13, 14]), AllBlocksCleared()], 3)
    yield 6, Batch(1001.25, [], 3)
    # Sent twice, as a replay that overlaps the live stream does.
    yield 5, Batch(1001.0, [stored([13, 14]), AllBlocksCleared()], 3)
    yield None
    yield 0, Batch(1002.5, [stored([21])], 0)
    yield 1, Batch(1002.75, [MapRemoved([21], "GPU")])


def describe(event):
    kind = {"BlockStored": "stored", "BlockRemoved": "removed", "AllBlocksCleared": "cleared"}
    tag = type(event).__struct_config__.tag
    hashes = [
        {"bytes": h.hex(), "low64": str(int.from_bytes(h[-8:], "big"))} if isinstance(h, bytes) else str(h)
        for h in getattr(event, "block_hashes", [])
    ]
    return [kind[tag], hashes]


def main():
    context = zmq.Context()
    # An XPUB is a PUB that hands over the subscriptions which reach it: the handshake that replaces a sleep.
    socket = context.socket(zmq.XPUB)
    socket.setsockopt(zmq.RCVTIMEO, 60_000)
    port = socket.bind_to_random_port("tcp://127.0.0.1")
    print(f"tcp://127.0.0.1:{port}", flush=True)
    socket.recv()
    encoder = msgspec.msgpack.Encoder()
    for step in script():
        if step is None:
            print(json.dumps({"restart": True}))
            continue
        sequence, batch = step
        socket.send_multipart([b"", sequence.to_bytes(8, "big"), encoder.encode(batch)])
        events = [describe(event) for event in batch.events]
        rank = getattr(batch, "data_parallel_rank", None)
        print(json.dumps({"sequence": sequence, "timestamp": batch.ts, "rank": rank, "events": events}))
    sys.stdout.flush()
    # Until whoever reads us has seen enough.
    sys.stdin.read()
    context.destroy(linger=0)


if __name__ == "__main__":
    main()
