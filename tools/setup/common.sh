# shellcheck shell=bash
# Shared by the set-up scripts: messages, the project root, stamps. Sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
stamps=$root/build/setup

say() { echo "setup: $*"; }
die() {
  echo "setup: $*" >&2
  exit 1
}

# The lines of a list without comments and blank lines.
entries() { sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$@"; }

# stamp NAME FILE...: the stamp that says NAME was done for exactly these contents.
stamp() {
  local name=$1
  shift
  echo "$stamps/$name.$(cat "$@" | sha256sum | cut -c1-16)"
}

# mark STAMP: records it and forgets older stamps of the same name.
mark() {
  mkdir -p "$stamps"
  rm -f "${1%.*}".*
  touch "$1"
}
