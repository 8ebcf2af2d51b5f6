#!/bin/sh
# Installs what building Fullbore needs on Debian or Ubuntu, through apt. Does nothing, not even
# `apt-get update`, when all of it is there. run.sh and test.sh call it first.
#
# usage: tools/setup.sh [PACKAGE ...]    PACKAGE: wanted besides, e.g. clang-format
#        tools/setup.sh --list           prints what it would want, one a line, and installs nothing
set -eu

# One line each: the package, how to tell that it is there (a command, or `-` for a query of dpkg), and why.
wanted='
build-essential      c++           the compiler
cmake                cmake         the build
ninja-build          ninja         runs the build
ccache               ccache        makes rebuilds cheap
mold                 mold          links the tests in a second
pkg-config           pkg-config    finds zstd, xxhash, zlib, expat, utf8proc and ncurses
python3              python3       the repository checks itself with it
libfmt-dev           -             text
libspdlog-dev        -             the log
libcli11-dev         -             the command line
libyaml-cpp-dev      -             configuration files
nlohmann-json3-dev   -             metrics and reports
libzstd-dev          -             compressed data and checkpoints
libxxhash-dev        -             checksums
zlib1g-dev           -             compressed spectrum files
libexpat1-dev        -             mzML, an XML format of spectra
libutf8proc-dev      -             normal forms of Unicode
libncurses-dev       -             the full-screen view of a run
libgtest-dev         -             tests
libgmock-dev         -             tests
libbenchmark-dev     -             benchmarks
qemu-user            qemu-x86_64   tests on processors that this machine is not
strace               strace        a test of the order in which files reach the disk
fuse3                fusermount3   tests of power cuts, on a disk that loses what was not synced
libfuse3-dev         -             the same
'
llvm_package=llvm-19-dev
newline='
'

if [ "${1-}" = --list ]; then
  printf '%s\n' "$wanted" "$llvm_package" | while read -r package _; do
    [ -z "$package" ] || echo "$package"
  done
  exit 0
fi

installed() {
  dpkg-query -W -f='${db:Status-Status}\n' "$1" 2>/dev/null | grep -qx installed
}

missing=""
need() {
  missing="$missing $1"
  reasons="${reasons-}$newline  $(printf '%-20s %s' "$1" "$2")"
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "setup: no apt here. Install by hand what is missing of:" >&2
  printf '%s\n' "$wanted" "$llvm_package          -             LLVM, 15 to 22: kernels compiled at run time" >&2
  exit 0 # it may all be there: CMake names what is not
fi

while read -r package command reason; do
  [ -n "$package" ] || continue
  if [ "$command" = - ]; then
    installed "$package" || need "$package" "$reason"
  else
    command -v "$command" >/dev/null || need "$package" "$reason"
  fi
done <<END
$wanted
END

llvm=""
for version in 19 22 21 20 18 17 16 15; do
  if [ -z "$llvm" ] && installed "llvm-$version-dev"; then llvm=$version; fi
done
[ -n "$llvm" ] || need $llvm_package "LLVM: kernels compiled at run time"

for package in "$@"; do
  installed "$package" || need "$package" "asked for by the caller"
done

[ -n "$missing" ] || exit 0

echo "setup: installing with apt:$reasons"
if [ "$(id -u)" -eq 0 ]; then
  as_root=""
elif command -v sudo >/dev/null; then
  as_root="sudo"
else
  echo "setup: this needs root or sudo, and neither is here. As root, run:" >&2
  echo "  apt-get install --no-install-recommends$missing" >&2
  exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # $missing is a list of words
if ! { $as_root apt-get update -q &&
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing; } \
  >"$log" 2>&1 </dev/null; then
  tail -n 30 "$log" >&2
  echo "setup: apt failed, see above" >&2
  exit 1
fi
echo "setup: done"
