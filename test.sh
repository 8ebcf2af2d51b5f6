#!/bin/sh
# Checks the sources (tools/check), builds everything in release mode and runs every test; exits with 0 if all pass.
# usage: ./test.sh [CTEST_ARGUMENT ...]    e.g. ./test.sh -R test_ops
set -eu
cd "$(dirname "$0")"
tools/setup.sh
cmake --preset release --log-level=NOTICE
tools/check
cmake --build --preset release --parallel "$(nproc)"
# Shells start what runs in the background with interrupts ignored; tests of interrupts must not inherit that.
exec env --default-signal=INT ctest --preset release --parallel 2 "$@"
