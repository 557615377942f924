#!/bin/sh
# Puts in every fault that the models have to catch, one after the other, and runs the models named for it. Prints
# `caught <fault>` or `MISSED <fault>`, and fails on a miss.
#
# A fault counts as caught only by what a model asserts (or by what loom notices): floors on the number of executions are
# off while a fault is in. That the same models pass without it is what `models.sh` shows.
set -eu
cd "$(dirname "$0")/.."

run() { QUIET=1 loom-tests/models.sh "$@"; }

# Builds, and fails here if that fails; lists the faults with their models.
faults=$(run --exact support::every_fault_has_its_model | sed -n 's/^.*fault \([a-z-]*\) \([a-z_:]*\)$/\1 \2/p')
[ -n "$faults" ]

output=$(mktemp)
trap 'rm -f "$output"' EXIT
missed=0
while read -r fault model; do
    if KV_EVENTS_FAULT=$fault run "$model" >"$output" 2>&1 </dev/null; then
        echo "MISSED $fault"
        missed=1
    elif grep -Eq '^test result: FAILED|deadlock; threads' "$output"; then
        # A deadlock, which is what a lost wake-up is, takes the whole process with it, so there is no result to read.
        echo "caught $fault"
    else
        cat "$output"
        echo "MISSED $fault (the models did not run)"
        missed=1
    fi
done <<LIST
$faults
LIST
exit $missed
