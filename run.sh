#!/bin/sh
# Builds the `fullbore` command and trains the default model on a text.
# usage: ./run.sh [TEXT_FILE] [key=value ...]    e.g. ./run.sh novel.txt train.steps=500
# Without TEXT_FILE the text is the licences that every Debian system carries.
set -eu

text=""
case "${1-}" in
  -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
  "" | *=*) ;;
  *)
    if [ ! -r "$1" ]; then echo "run.sh: cannot read $1" >&2; exit 3; fi
    text=$(realpath "$1")
    shift
    ;;
esac
cd "$(dirname "$0")"

tools/setup.sh
cmake --preset release --log-level=NOTICE
cmake --build --preset release --parallel "$(nproc)" --target fullbore_cli

if [ -z "$text" ]; then
  text=build/licences.txt
  find /usr/share/common-licenses -type f | LC_ALL=C sort | xargs cat >"$text.new"
  mv "$text.new" "$text"
  [ -s "$text" ] || { echo "run.sh: /usr/share/common-licenses is empty: name a text file" >&2; exit 3; }
fi

status=0
build/release/bin/fullbore train configs/default.yaml "data.path=$text" "$@" || status=$?
[ "$status" -eq 0 ] || exit "$status"
cat <<'END'

Next:
  ./run.sh FILE                             train on a text of yours
  build/release/bin/fullbore --help         the commands; each has a --help of its own
  build/release/bin/fullbore ops            every operation and its rules
  configs/default.yaml                      every key, to be overridden as key=value
END
