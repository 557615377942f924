"""Checks that what must not compile does not, for the reason that is meant, and that all else does.

usage: misuse.py COMPILER ARGUMENT... FILE
"""

import re
import subprocess
import sys


def main():
    *compiler, path = sys.argv[1:]
    unlimited = "-fmax-errors=0" if "clang" not in compiler[0] else "-ferror-limit=0"
    run = subprocess.run(
        [*compiler, unlimited, "-fsyntax-only", path], capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    )
    with open(path) as source:
        lines = source.read().splitlines()
    meant = {number: line.partition("// no: ")[2] for number, line in enumerate(lines, 1) if "// no: " in line}
    # An error and what the compiler says about it, up to the next one.
    said = {}
    for block in re.split(rf"^(?={re.escape(path)}:\d+:\d+: error: )", run.stderr, flags=re.MULTILINE)[1:]:
        number = int(block.split(":")[1])
        said[number] = said.get(number, "") + block
    wrong = [f"line {number} compiles: {lines[number - 1].strip()}" for number in meant.keys() - said.keys()]
    wrong += [f"line {number} does not compile: {block}" for number, block in said.items() if number not in meant]
    for number, reason in meant.items():
        # Without the line itself, which the compiler shows, and which has the reason in its comment.
        shown = "\n".join(line for line in said.get(number, "").splitlines() if "// no: " not in line)
        if number in said and reason not in shown.replace('\\"', '"'):
            wrong.append(f"line {number} does not say `{reason}`: {said[number]}")
    if not meant or run.returncode == 0:
        wrong.append("everything compiles")
    if wrong:
        sys.exit("misuse.py: " + "\n".join(wrong))
    print(f"{' '.join(compiler)}: {len(meant)} misuses do not compile, each for its reason")


main()
