"""Reads what the encoder for engines writes, by msgspec structs typed as the engines' own: which fields there are, in which
order, which are required and which may be nil.

usage: engine_reader.py vllm-array|vllm-map|sglang-array|sglang-map

Each line of standard input is one batch in hex, a space, and in JSON what it says. A batch that does not decode, or that
says something else, ends it with an error.
"""

import json
import math
import sys
from typing import Any, Optional, Union

import msgspec

Hash = Union[bytes, int]


class VllmEvent(msgspec.Struct, array_like=True, tag=True):
    pass


class VllmStored(VllmEvent, tag="BlockStored"):
    block_hashes: list[Hash]
    parent_block_hash: Optional[Hash]
    token_ids: list[int]
    block_size: int
    lora_id: Optional[int]
    medium: Optional[str]
    lora_name: Optional[str]
    extra_keys: Optional[list[Optional[tuple[Any, ...]]]] = None
    group_idx: Optional[int] = None
    kv_cache_spec_kind: Optional[str] = None
    kv_cache_spec_sliding_window: Optional[int] = None


class VllmRemoved(VllmEvent, tag="BlockRemoved"):
    block_hashes: list[Hash]
    medium: Optional[str]
    group_idx: Optional[int] = None


class VllmCleared(VllmEvent, tag="AllBlocksCleared"):
    pass


class VllmMapEvent(msgspec.Struct, tag=True):
    pass


class VllmMapStored(VllmMapEvent, tag="BlockStored"):
    block_hashes: list[Hash]
    parent_block_hash: Optional[Hash]
    token_ids: list[int]
    block_size: int
    lora_id: Optional[int]
    medium: Optional[str]
    lora_name: Optional[str]
    extra_keys: Optional[list[Optional[tuple[Any, ...]]]] = None
    group_idx: Optional[int] = None
    kv_cache_spec_kind: Optional[str] = None
    kv_cache_spec_sliding_window: Optional[int] = None
    locality: Optional[str] = None
    ownership: Optional[str] = None
    session_id: Optional[str] = None


class VllmMapRemoved(VllmMapEvent, tag="BlockRemoved"):
    block_hashes: list[Hash]
    medium: Optional[str]
    group_idx: Optional[int] = None
    locality: Optional[str] = None
    ownership: Optional[str] = None


class VllmMapCleared(VllmMapEvent, tag="AllBlocksCleared"):
    pass


class SglangEvent(msgspec.Struct, array_like=True, tag=True):
    pass


class SglangStored(SglangEvent, tag="BlockStored"):
    block_hashes: list[int]
    parent_block_hash: Optional[int]
    token_ids: list[int]
    block_size: int
    lora_id: Optional[int]
    medium: Optional[str] = None


class SglangRemoved(SglangEvent, tag="BlockRemoved"):
    block_hashes: list[int]
    medium: Optional[str] = None


class SglangCleared(SglangEvent, tag="AllBlocksCleared"):
    pass


class SglangMapEvent(msgspec.Struct, tag=True):
    pass


class SglangMapStored(SglangMapEvent, tag="BlockStored"):
    block_hashes: list[int]
    parent_block_hash: Optional[int]
    token_ids: list[int]
    block_size: int
    lora_id: Optional[int]
    medium: Optional[str]


class SglangMapRemoved(SglangMapEvent, tag="BlockRemoved"):
    block_hashes: list[int]
    medium: Optional[str]


class SglangMapCleared(SglangMapEvent, tag="AllBlocksCleared"):
    pass


EVENTS = {
    "vllm-array": Union[VllmStored, VllmRemoved, VllmCleared],
    "vllm-map": Union[VllmMapStored, VllmMapRemoved, VllmMapCleared],
    "sglang-array": Union[SglangStored, SglangRemoved, SglangCleared],
    "sglang-map": Union[SglangMapStored, SglangMapRemoved, SglangMapCleared],
}
KINDS = {"BlockStored": "stored", "BlockRemoved": "removed", "AllBlocksCleared": "cleared"}


def batch_type(dialect):
    rank = "data_parallel_rank" if dialect.startswith("vllm") else "attn_dp_rank"
    fields = [("ts", float), ("events", list[EVENTS[dialect]]), (rank, Optional[int], None)]
    return rank, msgspec.defstruct("Batch", fields, array_like=True)


def value(it):
    """A value of `extra_keys` in the JSON form."""
    if isinstance(it, bytes):
        return {"bytes": it.hex()}
    if isinstance(it, msgspec.msgpack.Ext):
        return {"ext": [it.code, it.data.hex()]}
    if isinstance(it, float) and not math.isfinite(it):
        return "NaN" if math.isnan(it) else "inf" if it > 0 else "-inf"
    return it


def hash_of(it):
    if isinstance(it, bytes):
        return {"bytes": it.hex(), "low64": str(int.from_bytes(it[-8:], "big")) if len(it) >= 8 else None}
    return None if it is None else str(it % 2**64)


def said(event):
    """What an event says, field by field, in the JSON form."""
    fields = msgspec.structs.asdict(event)
    fields["block_hashes"] = [hash_of(it) for it in fields.get("block_hashes", [])]
    if "parent_block_hash" in fields:
        fields["parent_block_hash"] = hash_of(fields["parent_block_hash"])
    if fields.get("extra_keys") is not None:
        fields["extra_keys"] = [None if block is None else [value(it) for it in block] for block in fields["extra_keys"]]
    fields["type"] = KINDS[event.__struct_config__.tag]
    return fields


def check(batch, rank, expected):
    assert batch.ts == expected["timestamp"], f"ts is {batch.ts}"
    assert getattr(batch, rank) == expected["data_parallel_rank"], f"rank is {getattr(batch, rank)}"
    assert len(batch.events) == len(expected["events"]), f"{len(batch.events)} events"
    for event, wanted in zip(batch.events, expected["events"]):
        for name, read in said(event).items():
            want = wanted.get(name, [] if name == "block_hashes" else None)
            assert read == want, f"{wanted['type']}: {name} is {read!r}, not {want!r}"


def main():
    (dialect,) = sys.argv[1:]
    rank, batch = batch_type(dialect)
    decoder = msgspec.msgpack.Decoder(batch)
    batches = events = 0
    for line in sys.stdin:
        payload, expected = line.split(" ", 1)
        try:
            decoded = decoder.decode(bytes.fromhex(payload))
            check(decoded, rank, json.loads(expected))
        except (msgspec.MsgspecError, AssertionError) as error:
            sys.exit(f"engine_reader.py: {dialect}: {error}\n{line}")
        batches += 1
        events += len(decoded.events)
    print(f"{batches} batches, {events} events")


main()
