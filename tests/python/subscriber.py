"""A subscriber that shares no code with the crate: pyzmq and msgspec's typed, strict decoder.

usage: subscriber.py ENDPOINT legacy|rfc

Prints `ready` once it receives, checks every message, and ends at a `cleared` of the tenant `end` with one JSON line:
what it saw. Any field missing, extra, out of place or of the wrong type ends it with an error.
"""

import json
import sys
from typing import Literal, Optional, Union

import msgspec
import zmq

Nothing = None


class Envelope(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    event_id: int
    timestamp: int
    model_name: Optional[str]
    block_size: Optional[int]
    additional_salt: Optional[str]
    lora_name: Optional[str]
    tenant_id: str
    backend_id: str
    dp_rank: int


class OfObject(Envelope, kw_only=True):
    medium: Literal["cpu", "disk"]
    group_id: Optional[str]
    object_key: str
    seq_hashes: list[int]
    base_block_idx: Nothing


class Stored(OfObject, tag_field="event_type", tag="stored", forbid_unknown_fields=True, kw_only=True):
    session_id: Union[str, msgspec.UnsetType] = msgspec.UNSET
    parent_hash: Nothing
    token_ids: Nothing


class Removed(OfObject, tag_field="event_type", tag="removed", forbid_unknown_fields=True, kw_only=True):
    pass


class Cleared(Envelope, tag_field="event_type", tag="cleared", forbid_unknown_fields=True, kw_only=True):
    medium: Nothing


# A subscriber written against the pre-RFC names sees the same maps through its own eyes: it goes by `type`, and knows
# nothing of what came later.
class BlockStored(msgspec.Struct, tag_field="type", tag="BlockStored", kw_only=True):
    block_hashes: list[int]
    parent_block_hash: Nothing
    token_ids: Nothing
    block_size: Optional[int]
    medium: str


class BlockRemoved(msgspec.Struct, tag_field="type", tag="BlockRemoved", kw_only=True):
    block_hashes: list[int]
    medium: str


class AllBlocksCleared(msgspec.Struct, tag_field="type", tag="AllBlocksCleared", kw_only=True):
    pass


ENVELOPE = ["event_id", "timestamp", "event_type", "type", "model_name", "block_size", "additional_salt", "lora_name",
            "tenant_id", "backend_id", "medium", "dp_rank"]
OF_OBJECT = ["group_id", "object_key", "seq_hashes", "block_hashes", "base_block_idx"]
OF_STORED = ["parent_hash", "token_ids", "parent_block_hash"]
LEGACY_ONLY = {"type", "block_hashes", "parent_block_hash"}
KEYS = {"stored": ENVELOPE + OF_OBJECT + OF_STORED, "removed": ENVELOPE + OF_OBJECT, "cleared": ENVELOPE}
LEGACY_NAME = {"stored": "BlockStored", "removed": "BlockRemoved", "cleared": "AllBlocksCleared"}

rfc = msgspec.msgpack.Decoder(Union[Stored, Removed, Cleared])
old = msgspec.msgpack.Decoder(tuple[int, list[Union[BlockStored, BlockRemoved, AllBlocksCleared]], int])
raw = msgspec.msgpack.Decoder(tuple[int, list[msgspec.Raw], int])
plain = msgspec.msgpack.Decoder(dict)


def check_event(body, timestamp, rank, legacy):
    fields = plain.decode(body)
    kind = fields["event_type"]
    wanted = [key for key in KEYS[kind] if legacy or key not in LEGACY_ONLY]
    if kind == "stored" and "session_id" in fields:
        wanted.insert(wanted.index("base_block_idx"), "session_id")
    assert list(fields) == wanted, f"{kind}: {list(fields)} instead of {wanted}"
    if legacy:
        assert fields.pop("type") == LEGACY_NAME[kind]
        assert fields.pop("block_hashes", []) == []
        assert fields.pop("parent_block_hash", None) is None
    event = rfc.decode(msgspec.msgpack.encode(fields))
    assert event.timestamp == timestamp, "an event's timestamp is its batch's"
    assert event.dp_rank == rank, "an event's rank is its batch's"
    assert getattr(event, "seq_hashes", []) == []
    return kind, event


def main():
    endpoint, names = sys.argv[1:]
    legacy = {"legacy": True, "rfc": False}[names]
    socket = zmq.Context().socket(zmq.SUB)
    socket.setsockopt(zmq.RCVHWM, 0)
    socket.setsockopt(zmq.RCVTIMEO, 30_000)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.connect(endpoint)

    seen = {"stored": 0, "removed": 0, "cleared": 0}
    messages = missed = 0
    first = last = last_id = timestamp_before = None
    objects, ended = [], False
    while not ended:
        frames = socket.recv_multipart()
        assert len(frames) == 3, f"{len(frames)} frames"
        assert frames[0] == b"" and len(frames[1]) == 8
        sequence = int.from_bytes(frames[1], "big")
        timestamp, events, rank = raw.decode(frames[2])
        if legacy:
            assert len(old.decode(frames[2])[1]) == len(events)
        if first is None:
            first, timestamp_before = sequence, 0
            print("ready", flush=True)
        else:
            assert sequence > last, f"{sequence} after {last}"
            missed += sequence - last - 1
        assert timestamp >= timestamp_before
        last, timestamp_before = sequence, timestamp
        messages += 1
        for body in events:
            kind, event = check_event(body, timestamp, rank, legacy)
            assert last_id is None or event.event_id == last_id + 1, f"id {event.event_id} after {last_id}"
            last_id = event.event_id
            if event.tenant_id == "probe":
                continue
            seen[kind] += 1
            if kind != "cleared" and len(objects) < 8:
                session = getattr(event, "session_id", msgspec.UNSET)
                objects.append([kind, event.tenant_id, event.medium, event.object_key, event.group_id,
                                None if session is msgspec.UNSET else session, event.backend_id,
                                event.model_name, event.block_size, event.additional_salt, event.lora_name, event.dp_rank])
            ended = ended or (kind == "cleared" and event.tenant_id == "end")
    print(json.dumps({"messages": messages, "first_sequence": first, "last_sequence": last, "missed": missed,
                      "last_event_id": last_id, "seen": seen, "objects": objects}))


main()
