#!/usr/bin/env python3
"""Writes vectors.json beside it: encoded events and payloads, each with what it decodes to.

The expectations are stated here by hand, from what producers mean; nothing of the decoder is used.
"""

import json
import pathlib
import struct

VECTORS = []


class Raw(bytes):
    """Bytes that are msgpack already."""


class Ext:
    """An extension value."""

    def __init__(self, kind, data):
        self.kind, self.data = kind, data


def integer(n):
    for low, high, code, form in (
        (0, 1 << 7, None, None), (-32, 0, None, None), (0, 1 << 8, 0xCC, ">B"), (0, 1 << 16, 0xCD, ">H"),
        (0, 1 << 32, 0xCE, ">I"), (0, 1 << 64, 0xCF, ">Q"), (-(1 << 7), 0, 0xD0, ">b"), (-(1 << 15), 0, 0xD1, ">h"),
        (-(1 << 31), 0, 0xD2, ">i"), (-(1 << 63), 0, 0xD3, ">q"),
    ):
        if low <= n < high:
            return bytes([n & 0xFF]) if code is None else bytes([code]) + struct.pack(form, n)
    raise ValueError(n)


def sized(n, fix, fix_limit, codes):
    if fix is not None and n < fix_limit:
        return bytes([fix | n])
    for code, form, limit in codes:
        if code is not None and n < limit:
            return bytes([code]) + struct.pack(form, n)
    raise ValueError(n)


def pack(value):
    if isinstance(value, Raw):
        return bytes(value)
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        data = value.encode()
        return sized(len(data), 0xA0, 32, ((0xD9, ">B", 1 << 8), (0xDA, ">H", 1 << 16), (0xDB, ">I", 1 << 32))) + data
    if isinstance(value, (bytes, bytearray)):
        return sized(len(value), None, 0, ((0xC4, ">B", 1 << 8), (0xC5, ">H", 1 << 16), (0xC6, ">I", 1 << 32))) + value
    if isinstance(value, Ext):
        return bytes([0xC7, len(value.data)]) + struct.pack(">b", value.kind) + value.data
    if isinstance(value, (list, tuple)):
        return sized(len(value), 0x90, 16, ((0xDC, ">H", 1 << 16), (0xDD, ">I", 1 << 32))) + b"".join(map(pack, value))
    if isinstance(value, dict):
        items = value.items()
        return map_head(len(value)) + b"".join(pack(key) + pack(item) for key, item in items)
    raise TypeError(value)


def map_head(n):
    return sized(n, 0x80, 16, ((0xDE, ">H", 1 << 16), (0xDF, ">I", 1 << 32)))


def pairs(*items):
    """A map from pairs, so that keys can repeat or be no text."""
    return Raw(map_head(len(items)) + b"".join(pack(key) + pack(item) for key, item in items))


def u64(n):
    return Raw(b"\xcf" + struct.pack(">Q", n))


def i64(n):
    return Raw(b"\xd3" + struct.pack(">q", n))


def hash_form(value):
    if isinstance(value, bytes):
        low = str(int.from_bytes(value[-8:], "big")) if len(value) >= 8 else None
        return {"bytes": value.hex(), "low64": low}
    return str(value % (1 << 64))


# What the normal form says where an event says nothing.
STORED = dict.fromkeys((
    "parent_block_hash", "token_ids", "block_size", "lora_id", "lora_name", "medium", "extra_keys", "block_mm_infos",
    "group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window"))
REMOVED = dict.fromkeys(("medium", "group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window"))
ENVELOPE = dict.fromkeys((
    "event_id", "timestamp", "tenant_id", "backend_id", "object_key", "group_id", "base_block_idx", "parent_hash",
    "model_name", "additional_salt", "dp_rank"))


def stored(hashes, tokens, size, **more):
    form = {"type": "stored", **STORED, "block_hashes": [hash_form(h) for h in hashes], "token_ids": tokens,
            "block_size": size, "is_eagle": False}
    return {**form, **more}


def removed(hashes, **more):
    return {"type": "removed", **REMOVED, "block_hashes": [hash_form(h) for h in hashes], **more}


CLEARED = {"type": "cleared"}


def envelope(event_type, **more):
    base = {"type": event_type, "event_type": event_type, **ENVELOPE, "seq_hashes": []}
    if event_type != "cleared":
        base["block_hashes"] = []
    if event_type == "stored":
        base = {**STORED, "is_eagle": False, **base}
    if event_type == "removed":
        base = {**REMOVED, **base}
    return {**base, "block_size": None, "lora_name": None, "medium": None, **more}


def add(kind, name, value, expect):
    data = value if isinstance(value, bytes) and not isinstance(value, Raw) else pack(value)
    outcome = {"error": expect} if isinstance(expect, str) else {"expect": expect}
    VECTORS.append({"name": name, "kind": kind, "hex": data.hex(), **outcome})


def event(name, value, expect):
    """An event alone, and the same event between two good ones."""
    add("event", name, value, expect)
    data = value if isinstance(value, bytes) and not isinstance(value, Raw) else pack(value)
    if expect not in STRUCTURAL:
        sibling = ["BlockRemoved", [7]]
        batch = pack([1.5, [sibling, Raw(data), sibling], 3])
        inside = {"error": expect} if isinstance(expect, str) else expect
        good = removed([7])
        add("batch", f"{name}, among siblings", batch,
            {"timestamp": 1.5, "data_parallel_rank": 3, "events": [good, inside, good]})


STRUCTURAL = ("truncated", "trailing_bytes", "empty", "depth_limit", "invalid_msgpack")


def batch(name, value, expect):
    add("batch", name, value, expect)


def payload(events, timestamp=1.5, rank=None):
    return {"timestamp": timestamp, "data_parallel_rank": rank, "events": events}


def maps():
    full = {
        "type": "BlockStored", "block_hashes": [1, 1 << 63, -1], "parent_block_hash": -2, "token_ids": [1, 200, 70000],
        "block_size": 1, "lora_id": 1 << 40, "medium": "GPU", "lora_name": "ad", "extra_keys": [["s", 1], None],
        "group_idx": 2, "kv_cache_spec_kind": "mamba", "kv_cache_spec_sliding_window": 128,
    }
    form = stored([1, 1 << 63, -1], [1, 200, 70000], 1, parent_block_hash=hash_form(-2), lora_id=1 << 40, medium="GPU",
                  lora_name="ad", extra_keys=[["s", 1], None], group_idx=2, kv_cache_spec_kind="mamba",
                  kv_cache_spec_sliding_window=128)
    event("map: every engine field", full, form)
    event("map: keys in reverse, the tag last", dict(reversed(full.items())), form)
    event("map: unknown keys of any type", {
        "zz": [{"a": [1, {}]}], "y": Ext(5, b"\1\2"), "x": b"\0", "w": 1.5, "v": True, **full, "u": {"type": "x"}}, form)
    event("map: keys that are not text are nobody's", pairs((1, 2), (b"type", 3), ([1, [2]], 4), *full.items()), form)
    minimal = {"type": "BlockStored", "block_hashes": [5], "token_ids": None, "block_size": None}
    event("map: nil tokens and size are there", minimal, stored([5], None, None))
    event("map: optional fields nil", {**minimal, **dict.fromkeys(k for k in STORED if k not in minimal)},
          stored([5], None, None))
    for field in ("block_hashes", "token_ids", "block_size"):
        event(f"map: no {field}", {k: v for k, v in minimal.items() if k != field}, "missing_field")
    event("map: nil hashes of an engine", {**minimal, "block_hashes": None}, "wrong_type")
    event("map: removed", {"type": "BlockRemoved", "block_hashes": [], "medium": "CPU", "group_idx": 0},
          removed([], medium="CPU", group_idx=0))
    event("map: removed without hashes", {"type": "BlockRemoved"}, "missing_field")
    event("map: fields of stored are unknown to removed",
          {"type": "BlockRemoved", "block_hashes": [1], "token_ids": "x", "lora_id": -1, "block_size": "y"}, removed([1]))
    event("map: cleared passes over everything", {"type": "AllBlocksCleared", "block_hashes": None, "medium": 5}, CLEARED)
    event("map: cleared with a source", {"source_kind": "s", "type": "AllBlocksCleared"}, {**CLEARED, "source_kind": "s"})
    event("map: ignored", {"type": "Ignored", "block_hashes": 5}, {"type": "ignored"})
    event("map: later fields", {**minimal, "locality": "REMOTE", "ownership": "o", "session_id": "s", "cache_salt": "c",
                                "source_kind": None},
          stored([5], None, None, locality="REMOTE", ownership="o", session_id="s", cache_salt="c"))
    event("map: the last of a duplicate counts",
          pairs(("type", "BlockRemoved"), ("block_hashes", [1]), ("medium", "a"), ("block_hashes", [2]), ("medium", None)),
          removed([2]))
    event("map: a bad value counts wherever it stands",
          pairs(("type", "BlockRemoved"), ("medium", 1), ("block_hashes", [1]), ("medium", "a")), "wrong_type")
    event("map: the first fault is told", {**minimal, "block_hashes": [b""], "medium": 1}, "bad_hash")
    event("map: a fault before what is missing", {"type": "BlockStored", "medium": 1}, "wrong_type")
    event("map: the tag before any fault", {"medium": 1, "type": "Nope"}, "unknown_tag")
    event("map: no tag", {"block_hashes": [1]}, "missing_tag")
    event("map: empty", {}, "missing_tag")
    event("map: a tag that is a number", {"type": 1}, "wrong_type")
    event("map: a tag that is nil", {"type": None, "event_type": "stored"}, "wrong_type")
    event("map: a tag that is bytes", {"type": b"BlockStored"}, "wrong_type")
    event("map: a tag that is not UTF-8", {"type": Raw(b"\xa1\xff")}, "invalid_utf8")
    event("map: text that is not UTF-8", {**minimal, "medium": Raw(b"\xa2\xc3\x28")}, "invalid_utf8")
    for name, field, bad in (
        ("hashes that are a number", "block_hashes", 5), ("a hash that is text", "block_hashes", ["ab" * 32]),
        ("a hash that is a float", "block_hashes", [1.0]), ("a hash that is nil", "block_hashes", [None]),
        ("a parent that is text", "parent_block_hash", "x"), ("a token too large", "token_ids", [1, 1 << 32]),
        ("a token below zero", "token_ids", [-1]), ("a token that is a float", "token_ids", [1.0]),
        ("tokens that are bytes", "token_ids", b"\1"), ("tokens of both kinds", "token_ids", [[1, 2], 3]),
        ("tokens of both kinds, plain first", "token_ids", [3, [1, 2]]), ("tokens in threes", "token_ids", [[1, 2, 3]]),
        ("a size too large", "block_size", 1 << 32), ("a size that is a bool", "block_size", True),
        ("a LoRA id below zero", "lora_id", -1), ("a LoRA name that is a number", "lora_name", 1),
        ("a medium that is bytes", "medium", b"cpu"), ("extra keys that are text", "extra_keys", "x"),
        ("extra keys with text for a block", "extra_keys", ["x"]), ("a group too large", "group_idx", 1 << 32),
        ("a kind that is a number", "kv_cache_spec_kind", 1), ("a window below zero", "kv_cache_spec_sliding_window", -1),
        ("mm infos that are a map", "block_mm_infos", {}), ("a salt that is a number", "cache_salt", 1),
    ):
        event(f"map: {name}", {**minimal, field: bad}, "wrong_type")


def positional():
    head = ["BlockStored", [1, b"\0" * 31 + b"\x09"], None, [1, 2], 2]
    form = stored([1, b"\0" * 31 + b"\x09"], [1, 2], 2)
    for end in range(1, 5):
        event(f"array: stored cut to {end}", head[:end], "missing_field")
    event("array: stored that ends early", head, form)
    event("array: with LoRA id", head + [7], {**form, "lora_id": 7})
    event("array: with medium", head + [None, "cpu"], {**form, "medium": "cpu"})
    event("array: with LoRA name", head + [None, None, "n"], {**form, "lora_name": "n"})
    event("array: with salt", head + [None, "GPU", {"cache_salt": "t1"}], {**form, "medium": "GPU", "cache_salt": "t1"})
    event("array: with salt, session and more", head + [None, None, {"x": [1], "session_id": "s", "cache_salt": None}],
          {**form, "session_id": "s"})
    event("array: with a bad salt", head + [None, None, {"cache_salt": 1}], "wrong_type")
    event("array: a number for the LoRA name", head + [None, None, 1], "wrong_type")
    event("array: with extra keys", head + [None, None, None, [None, [], ["a", 1, None]]],
          {**form, "extra_keys": [None, [], ["a", 1, None]]})
    full = head + [None, None, None, None]
    infos = [{"mm_objects": [{"mm_hash": 9, "offsets": [[0, 4], [6, 8]]}]}, None]
    terse = [[[[9, [[0, 4], [6, 8]]]]], None]
    infos_form = [{"mm_objects": [{"mm_hash": "9", "offsets": [[0, 4], [6, 8]]}]}, None]
    tails = (
        ("group", [3], {"group_idx": 3}),
        ("group, kind, window", [3, "mamba", 64],
         {"group_idx": 3, "kv_cache_spec_kind": "mamba", "kv_cache_spec_sliding_window": 64}),
        ("nil, kind, number", [None, "mamba", 64], {"group_idx": 64, "kv_cache_spec_kind": "mamba"}),
        ("kind first", ["x", 1, 2], {"group_idx": 1, "kv_cache_spec_kind": "x", "kv_cache_spec_sliding_window": 2}),
        ("infos first", [infos, 3, "k", 4],
         {"block_mm_infos": infos_form, "group_idx": 3, "kv_cache_spec_kind": "k", "kv_cache_spec_sliding_window": 4}),
        ("infos last", [3, "k", 4, terse],
         {"block_mm_infos": infos_form, "group_idx": 3, "kv_cache_spec_kind": "k", "kv_cache_spec_sliding_window": 4}),
        ("a third number", [1, 2, 3], {"group_idx": 1, "kv_cache_spec_sliding_window": 2}),
        ("a second string", ["a", "b"], {"kv_cache_spec_kind": "a"}),
        ("all nil", [None] * 4, {}),
        ("elements behind four", [None] * 4 + [True, {}, [1], 1.5, "z"], {}),
        ("the fifth is not looked at", [1, "k", None, None, -1], {"group_idx": 1, "kv_cache_spec_kind": "k"}),
    )
    for name, tail, more in tails:
        event(f"array: tail with {name}", full + tail, {**form, **more})
    for name, bad in (("a bool", True), ("a float", 1.5), ("a map", {}), ("bytes", b"x"), ("a number below zero", -1),
                      ("a number too large", 1 << 32), ("an array of numbers", [1])):
        event(f"array: tail with {name}", full + [bad], "wrong_type")
    event("array: removed", ["BlockRemoved", [-1]], removed([-1]))
    event("array: removed with all", ["BlockRemoved", [1], "cpu", 2, "k", 3],
          removed([1], medium="cpu", group_idx=2, kv_cache_spec_kind="k", kv_cache_spec_sliding_window=3))
    event("array: removed, elements behind three", ["BlockRemoved", [1], None, None, None, None, True], removed([1]))
    event("array: removed has no infos", ["BlockRemoved", [1], None, [None]], "wrong_type")
    event("array: removed without hashes", ["BlockRemoved"], "missing_field")
    event("array: cleared", ["AllBlocksCleared"], CLEARED)
    event("array: cleared with more", ["AllBlocksCleared", "src", 1, [2]], CLEARED)
    event("array: ignored", ["Ignored", 1, {}], {"type": "ignored"})
    event("array: empty", [], "missing_tag")
    event("array: unknown tag", ["BlockMoved", [1]], "unknown_tag")
    event("array: tag in another case", ["blockstored", [1]], "unknown_tag")
    event("array: the store's word", ["stored", [1]], "unknown_tag")
    event("array: a nil tag", [None], "wrong_type")
    for name, value in (("nil", None), ("a number", 5), ("text", "BlockRemoved"), ("a float", 1.5)):
        event(f"no event: {name}", value, "wrong_type")
    for name, tokens, plain in (("one pair", [[1, 2]], [1, 2]), ("a chain", [[1, 2], [2, 3]], [1, 2, 3]),
                                ("no chain", [[1, 2], [8, 9]], [1, 8, 9])):
        event(f"array: pairs, {name}", ["BlockStored", [1], None, tokens, 1],
              {**stored([1], plain, 1), "is_eagle": True})
    event("array: no tokens", ["BlockStored", [1], 0, [], 0], stored([1], [], 0, parent_block_hash="0"))
    many = [n * n * 97 % 130000 for n in range(700)]
    event("array: many tokens", ["BlockStored", [1], None, many, 16], stored([1], many, 16))
    for at in (0, 1, 254, 255, 256, 300, 698, 699):
        wide = [u64(t) if n == at else t for n, t in enumerate(many)]
        event(f"array: many tokens, number {at} in full width", ["BlockStored", [1], None, wide, 16], stored([1], many, 16))
        for name, bad in (("-1", -1), ("too large", 1 << 32), ("nil", None)):
            broken = [bad if n == at else t for n, t in enumerate(many)]
            event(f"array: many tokens, number {at} is {name}", ["BlockStored", [1], None, broken, 16], "wrong_type")


def hashes():
    for n in (0, 1, 127, 128, 255, 256, 65535, 65536, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1):
        event(f"hash: {n}", ["BlockRemoved", [n, u64(n)]], removed([n, n]))
    for n in (-1, -32, -33, -128, -129, -32768, -32769, -(1 << 31), -(1 << 31) - 1, -(1 << 63)):
        event(f"hash: {n}", ["BlockRemoved", [n, i64(n)]], removed([n, n]))
    event("hash: signed width, not negative", ["BlockRemoved", [Raw(b"\xd0\x05"), Raw(b"\xd1\x01\0"), i64(9)]],
          removed([5, 256, 9]))
    for size in (1, 7, 8, 9, 32, 300):
        value = bytes(range(1, 256))[:size].ljust(size, b"\xee")
        event(f"hash: {size} bytes", ["BlockRemoved", [value]], removed([value]))
    event("hash: no bytes", ["BlockRemoved", [b""]], "bad_hash")
    event("hash: an extension", ["BlockRemoved", [Ext(1, b"12345678")]], "wrong_type")


def masters():
    fields = {
        "event_id": u64(12), "timestamp": u64(1790000000123), "event_type": "stored", "type": "BlockStored",
        "model_name": "m", "block_size": 64, "additional_salt": None, "lora_name": None, "tenant_id": "default",
        "backend_id": "b", "medium": "cpu", "dp_rank": 3, "group_id": None, "object_key": "k@1", "seq_hashes": [],
        "block_hashes": [], "base_block_idx": None, "parent_hash": None, "token_ids": None, "parent_block_hash": None,
    }
    said = {"event_id": 12, "timestamp": 1790000000123, "model_name": "m", "block_size": 64, "tenant_id": "default",
            "backend_id": "b", "medium": "cpu", "dp_rank": 3, "object_key": "k@1"}
    event("store: stored", fields, envelope("stored", **said))
    legacy = ("type", "block_hashes", "parent_block_hash")
    plain = {k: v for k, v in fields.items() if k not in legacy}
    event("store: stored without the old names", plain, envelope("stored", **said))
    event("store: nothing but its type", {"event_type": "stored"}, envelope("stored"))
    event("store: removed, nothing but its type", {"event_type": "removed"}, envelope("removed"))
    event("store: cleared, nothing but its type", {"event_type": "cleared"}, envelope("cleared"))
    event("store: nil lists", {"event_type": "removed", "block_hashes": None, "seq_hashes": None}, envelope("removed"))
    gone = {k: v for k, v in fields.items() if k not in ("parent_hash", "token_ids", "parent_block_hash")}
    event("store: removed", {**gone, "event_type": "removed", "type": "BlockRemoved"}, envelope("removed", **said))
    event("store: cleared", {"event_id": 1, "timestamp": 2, "event_type": "cleared", "type": "AllBlocksCleared",
                             "tenant_id": "t", "medium": None, "dp_rank": 0},
          envelope("cleared", event_id=1, timestamp=2, tenant_id="t", dp_rank=0))
    event("store: signed alias", {"event_type": "stored", "seq_hashes": [1 << 63], "block_hashes": [-(1 << 63)]},
          envelope("stored", seq_hashes=[str(1 << 63)], block_hashes=[str(1 << 63)]))
    event("store: real hashes", {"event_type": "stored", "seq_hashes": [b"\1" * 32, 2], "parent_hash": 3,
                                 "base_block_idx": 4},
          envelope("stored", seq_hashes=[hash_form(b"\1" * 32), "2"], parent_hash="3", base_block_idx=4))
    event("store: old names only", {k: v for k, v in fields.items() if k != "event_type"},
          stored([], None, 64, medium="cpu"))
    event("store: the envelope of an engine is unknown", {"type": "BlockRemoved", "block_hashes": [1], "event_id": -1,
                                                          "object_key": 5}, removed([1]))
    event("store: names that disagree", {**fields, "type": "BlockRemoved"}, "conflict")
    event("store: names that disagree, the last", {"event_type": "removed", "type": "BlockStored"}, "conflict")
    event("store: the engine's word", {"event_type": "BlockStored"}, "unknown_tag")
    event("store: the store's word in type", {"type": "stored"}, "unknown_tag")
    event("store: an id below zero", {**fields, "event_id": -1}, "wrong_type")
    event("store: a key that is a number", {**fields, "object_key": 5}, "wrong_type")
    event("store: a hash that is text", {**fields, "seq_hashes": ["x"]}, "wrong_type")
    event("store: an unknown kind of cache", {"event_type": "removed", "kv_cache_spec_kind": "hybrid_v9"},
          envelope("removed", kv_cache_spec_kind="hybrid_v9"))


def values():
    def with_keys(keys):
        return ["BlockStored", [1], None, [1], 1, None, None, None, [keys]]

    def form(keys):
        return stored([1], [1], 1, extra_keys=[keys])

    event("extra keys: scalars", with_keys([1, -1, (1 << 64) - 1, -(1 << 63), 1.5, True, None, "é"]),
          form([1, -1, (1 << 64) - 1, -(1 << 63), 1.5, True, None, "é"]))
    event("extra keys: bytes and extensions", with_keys([b"\xab\xcd", Ext(-3, b"\1\2")]),
          form([{"bytes": "abcd"}, {"ext": [-3, "0102"]}]))
    event("extra keys: nested", with_keys([["h", 0], {"a": [1, {"b": None}]}]), form([["h", 0], {"a": [1, {"b": None}]}]))
    mm = {"type": "BlockStored", "block_hashes": [1], "token_ids": [1], "block_size": 1}

    def info(value):
        return {**mm, "block_mm_infos": [value]}

    event("mm infos: bytes", info({"mm_objects": [{"mm_hash": b"12345678", "offsets": []}]}),
          stored([1], [1], 1, block_mm_infos=[{"mm_objects": [{"mm_hash": hash_form(b"12345678"), "offsets": []}]}]))
    event("mm infos: mixed forms", info({"x": 1, "mm_objects": [[5, [[1, 2]], "more"]]}),
          stored([1], [1], 1, block_mm_infos=[{"mm_objects": [{"mm_hash": "5", "offsets": [[1, 2]]}]}]))
    event("mm infos: no objects", info({}), "missing_field")
    event("mm infos: an object without hash", info({"mm_objects": [{"offsets": []}]}), "missing_field")
    event("mm infos: an object without offsets", info([[[1]]]), "missing_field")
    event("mm infos: an offset alone", info({"mm_objects": [{"mm_hash": 1, "offsets": [[1]]}]}), "wrong_type")
    event("mm infos: a number", info(1), "wrong_type")


def bins():
    inner = pack(["BlockRemoved", [1]])
    event("bin: an event", inner and Raw(pack(inner)), removed([1]))
    event("bin: an event in two", Raw(pack(pack(inner))), "wrong_type")
    event("bin: nothing", Raw(pack(b"")), "empty")
    event("bin: cut", Raw(pack(inner[:-1])), "truncated")
    event("bin: bytes behind", Raw(pack(inner + b"\xc0")), "trailing_bytes")
    event("bin: c1", Raw(pack(b"\x92\xa1x\xc1")), "invalid_msgpack")
    event("bin: too deep", Raw(pack(b"\x91" * 40 + b"\xc0")), "depth_limit")


def structure():
    good = pack(["BlockRemoved", [1]])
    add("event", "structure: no bytes", b"", "empty")
    for cut in range(1, len(good)):
        add("event", f"structure: cut to {cut}", good[:cut], "truncated")
    add("event", "structure: bytes behind", good + b"\xc0", "trailing_bytes")
    add("event", "structure: c1", b"\x91\xc1", "invalid_msgpack")
    for depth, outcome in ((31, removed([1])), (32, "depth_limit")):
        deep = b"\x91" * (depth - 1) + b"\x90"
        add("event", f"structure: an unknown value {depth} deep",
            pack({"type": "BlockRemoved", "block_hashes": [1], "x": Raw(deep)}), outcome)
    add("event", "structure: maps 40 deep", b"\x81\x01" * 40 + b"\xc0", "depth_limit")
    for name, head in (("array32", b"\xdd\xff\xff\xff\xff"), ("array16", b"\xdc\xff\xff"), ("map32", b"\xdf\x7f\xff\xff\xff"),
                       ("str32", b"\xdb\xff\xff\xff\xff"), ("bin32", b"\xc6\x80\0\0\0"), ("ext32", b"\xc9\xff\xff\xff\xff\1")):
        add("event", f"structure: absurd {name}", head, "truncated")
        add("batch", f"structure: absurd {name} in an event", b"\x92\x01\x91\x92\xacBlockRemoved" + head, "truncated")
    batch("structure: no bytes in a payload", b"", "empty")
    whole = pack([1.5, [["BlockRemoved", [1]]], None])
    for cut in range(1, len(whole)):
        batch(f"structure: payload cut to {cut}", whole[:cut], "truncated")
    batch("structure: two payloads", whole + whole, "trailing_bytes")
    batch("structure: nested beyond all", b"\x91" * 5000 + b"\xc0", "depth_limit")
    batch("structure: headers that multiply", b"\xdc\xff\xff" * 400, "truncated")


def envelopes():
    one, form = ["BlockRemoved", [1]], removed([1])
    for name, ts, value in (("zero", 0, 0), ("an integer", 1790000000123, 1790000000123), ("u64", u64((1 << 64) - 1), (1 << 64) - 1),
                            ("below zero", i64(-5), -5), ("a float", 1790000000.25, 1790000000.25),
                            ("a short float", Raw(b"\xca\x3f\xc0\0\0"), 1.5)):
        batch(f"batch: timestamp {name}", [ts, [one]], payload([form], value))
    for name, ts in (("nil", None), ("NaN", Raw(b"\xcb\x7f\xf8" + b"\0" * 6)), ("infinite", Raw(b"\xcb\x7f\xf0" + b"\0" * 6)),
                     ("text", "1.5"), ("a bool", True), ("bytes", b"1")):
        batch(f"batch: timestamp {name}", [ts, [one]], "wrong_type")
    for name, rank in (("nil", None), ("zero", 0), ("below zero", -1), ("large", (1 << 64) - 1)):
        batch(f"batch: rank {name}", [1.5, [one], rank], payload([form], rank=rank))
    for name, rank in (("text", "0"), ("a float", 1.0), ("an array", [0])):
        batch(f"batch: rank {name}", [1.5, [one], rank], "wrong_type")
    batch("batch: more elements", [1.5, [one], 2, {"x": [1]}, "y"], payload([form], rank=2))
    batch("batch: no events", [1.5, []], payload([]))
    batch("batch: a map", {"ts": 1.5, "events": [one], "data_parallel_rank": 4}, payload([form], rank=4))
    batch("batch: a map in another order, with more", {"x": [1], "data_parallel_rank": None, "events": [one], "ts": 1.5},
          payload([form]))
    batch("batch: a map, the last of a duplicate counts",
          pairs(("ts", 1), ("events", [1, 2]), ("ts", 1.5), ("events", [one]), (7, 8)), payload([form]))
    batch("batch: a map, a bad value counts", pairs(("ts", None), ("events", [one]), ("ts", 1.5)), "wrong_type")
    for name, value in (("a map without events", {"ts": 1.5}), ("a map without time", {"events": []}), ("only a time", [1.5]),
                        ("an empty array", []), ("an empty map", {})):
        batch(f"batch: {name}", value, "missing_field")
    for name, value in (("nil", None), ("a number", 5), ("text", "x"), ("bytes", pack([1.5, [one]]) and b"x"),
                        ("events that are nil", [1.5, None]), ("events that are a map", [1.5, {}]),
                        ("an event for events", [1.5, "BlockRemoved"])):
        batch(f"batch: {name}", Raw(pack(value)), "wrong_type")
    batch("batch: both shapes", [1.5, [{"type": "BlockRemoved", "block_hashes": [1]}, one]], payload([form, form]))
    batch("batch: all bad", [1.5, [[], {"type": "x"}, 5]],
          payload([{"error": e} for e in ("missing_tag", "unknown_tag", "wrong_type")]))
    batch("batch: many events", [1.5, [one] * 70], payload([form] * 70))
    wide = b"\xdd\0\0\0\2\xcb" + struct.pack(">d", 1.5) + b"\xdd\0\0\0\1\xdc\0\2\xda\0\x0cBlockRemoved\xdd\0\0\0\1\xcf" + b"\0" * 7 + b"\1"
    batch("batch: widths that are not the shortest", wide, payload([form]))


def main():
    for part in (maps, positional, hashes, masters, values, bins, structure, envelopes):
        part()
    names = [(vector["kind"], vector["name"]) for vector in VECTORS]
    assert len(names) == len(set(names)), "two vectors of one name"
    lines = ",\n".join(json.dumps(vector, ensure_ascii=False, separators=(",", ":")) for vector in VECTORS)
    path = pathlib.Path(__file__).with_name("vectors.json")
    path.write_text('{"vectors":[\n' + lines + "\n]}\n", encoding="utf-8")
    print(f"{len(VECTORS)} vectors")


main()
