#!/usr/bin/env python3
"""Feeds the hex of a vectors file to `kv-events decode` and compares every line.

    check_vectors.py PATH-TO-kv-events VECTORS.json...

Numbers are compared as numbers (an integer and a float that are equal are equal), everything else as it is.
Exits with 1 if any vector differs. Needs nothing beyond Python's own library.
"""

import json
import subprocess
import sys


def same(got, want):
    """Whether two JSON values are equal, numbers by value."""
    if isinstance(got, bool) or isinstance(want, bool):
        return got is want
    if isinstance(got, (int, float)) and isinstance(want, (int, float)):
        return got == want
    if type(got) is not type(want):
        return False
    if isinstance(got, dict):
        return got.keys() == want.keys() and all(same(got[key], want[key]) for key in want)
    if isinstance(got, list):
        return len(got) == len(want) and all(map(same, got, want))
    return got == want


def decode(program, vectors, flags):
    """The lines that the program prints for these vectors, one each."""
    lines = "".join(vector["hex"] + "\n" for vector in vectors)
    # Many vectors are bad on purpose, and standard error has a line for each.
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    run = subprocess.run([program, "decode", *flags], input=lines.encode(), check=True, **streams)
    printed = run.stdout.decode().splitlines()
    if len(printed) != len(vectors):
        sys.exit(f"{len(vectors)} lines in, {len(printed)} lines out")
    return [json.loads(line) for line in printed]


def check(program, path):
    """Number of vectors of one file, and of those that came out as expected."""
    with open(path, encoding="utf-8") as file:
        vectors = json.load(file)["vectors"]
    good = 0
    for kind, flags in (("batch", []), ("event", ["--event"])):
        chosen = [vector for vector in vectors if vector["kind"] == kind]
        for vector, got in zip(chosen, decode(program, chosen, flags)):
            want = vector["expect"] if "expect" in vector else {"error": vector["error"]}
            if same(got, want):
                good += 1
            else:
                print(f"{path}: {vector['name']}\n  want {json.dumps(want)}\n  got  {json.dumps(got)}")
    return len(vectors), good


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, paths = sys.argv[1], sys.argv[2:]
    failed = False
    for path in paths:
        total, good = check(program, path)
        print(f"{path}: {good} of {total}")
        failed |= good != total or total == 0
    sys.exit(1 if failed else 0)


main()
