#!/usr/bin/env python3
"""Times msgspec's typed decoder on the payloads of the bench `decode`:

    mkdir payloads && KV_EVENTS_BENCH_DUMP=$PWD/payloads cargo bench --bench decode
    benches/decode_msgspec.py payloads

It decodes only, and does not look at what it decoded, unlike the contenders of the bench.
"""

import argparse
import pathlib
import time

import msgspec


class Master(msgspec.Struct, kw_only=True):
    event_id: int
    timestamp: int
    event_type: str
    type: str
    model_name: str | None
    block_size: int | None
    additional_salt: str | None
    lora_name: str | None
    tenant_id: str
    backend_id: str
    medium: str | None
    dp_rank: int
    group_id: str | None
    object_key: str | None
    seq_hashes: list[int]
    block_hashes: list[int]
    base_block_idx: int | None
    parent_hash: int | None = None
    token_ids: list[int] | None = None
    parent_block_hash: int | None = None


class MapStored(msgspec.Struct, tag="BlockStored", kw_only=True):
    block_hashes: list[int]
    parent_block_hash: int | None = None
    token_ids: list[int]
    block_size: int
    lora_id: int | None = None
    medium: str | None = None
    lora_name: str | None = None
    group_idx: int | None = None
    kv_cache_spec_kind: str | None = None


class PositionalStored(msgspec.Struct, tag="BlockStored", array_like=True):
    block_hashes: list[int]
    parent_block_hash: int | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None = None
    medium: str | None = None
    lora_name: str | None = None
    extra_keys: object = None
    group_idx: int | None = None
    kv_cache_spec_kind: str | None = None


EVENTS = {
    "master-64": Master,
    "tokens-512-positional": PositionalStored,
    "tokens-512-map": MapStored,
    "hostile-junk": MapStored,
    "hostile-cut": PositionalStored,
}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    arguments.add_argument("payloads", type=pathlib.Path, help="folder that the bench wrote")
    arguments.add_argument("--seconds", type=float, default=1.0, help="for each case (default: %(default)s)")
    options = arguments.parse_args()
    for case, event in EVENTS.items():
        payloads = [path.read_bytes() for path in sorted(options.payloads.glob(f"{case}.*.msgpack"))]
        if not payloads:
            raise SystemExit(f"no payloads of {case} in {options.payloads}: see --help for how to write them")
        decode = msgspec.msgpack.Decoder(tuple[float, list[event], int | None]).decode
        times, end = [], time.perf_counter() + options.seconds
        while time.perf_counter() < end:
            for payload in payloads:
                start = time.perf_counter_ns()
                try:
                    decode(payload)
                except msgspec.DecodeError:
                    if case != "hostile-cut":
                        raise
                times.append(time.perf_counter_ns() - start)
        times.sort()
        print(f"{case:22} median {times[len(times) // 2]:>8} ns, {len(payloads[0])} bytes")


main()
