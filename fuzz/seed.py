#!/usr/bin/env python3
"""Writes the seeds of all fuzz targets from vectors files:  fuzz/seed.py VECTORS.json..."""

import hashlib
import json
import pathlib
import sys


def main():
    corpus = pathlib.Path(__file__).resolve().parent / "corpus"
    for path in sys.argv[1:]:
        for vector in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["vectors"]:
            data = bytes.fromhex(vector["hex"])
            targets = {vector["kind"]: data}
            if vector["kind"] == "batch":
                # Three frames: an empty topic, a sequence of 8 bytes, the payload.
                sequence = (7).to_bytes(8, "big")
                targets["frames"] = b"\x03\x00\x08" + sequence + data
                # Limits, behind a handshake, and the three frames of a message, the last with its size in 8 bytes.
                targets["zmtp"] = b"\x94\x06\x01\x00\x01\x08" + sequence + b"\x02" + len(data).to_bytes(8, "big") + data
            for target, seed in targets.items():
                folder = corpus / target
                folder.mkdir(parents=True, exist_ok=True)
                (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


main()
