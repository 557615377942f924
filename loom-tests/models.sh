#!/bin/sh
# Runs the models of the lock-free parts; arguments go to the test program, such as the name of a model. What they are built
# with is not a feature but `--cfg`, so that nobody's build can switch it on by mistake, and stays in a folder of its own.
set -eu
cd "$(dirname "$0")/.."
export RUSTFLAGS="--cfg kv_events_loom --cfg kv_events_faults${RUSTFLAGS:+ $RUSTFLAGS}"
exec cargo test ${QUIET:+--quiet} -p kv-events --profile models --no-default-features \
    --target-dir "${CARGO_TARGET_DIR:-target}/models" --test loom -- "$@"
