#!/bin/bash
# wheels.sh [LIST [NAME]]: makes sure build/NAME (default env) is a Python environment that holds every wheel of LIST (default requirements.txt).
# An environment that already satisfies the list is kept as it is; it may be a symbolic link to one elsewhere.
set -euo pipefail
# shellcheck source=tools/setup/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

folder=build/${2:-env}
env=$root/$folder
name=${1:-requirements.txt}
list=$root/$name
done_stamp=$(stamp "wheels-${name%.txt}" "$list")

runs() { "$env/bin/python" -c '' 2> /dev/null && { [ $folder != build/env ] || "$env/bin/cmake" --version > /dev/null 2>&1; }; }

satisfied() {
  [ -x "$env/bin/python" ] && "$env/bin/python" - "$list" << 'PYTHON'
import sys
from importlib.metadata import PackageNotFoundError, version

for line in open(sys.argv[1], encoding="utf-8"):
    name, _, wanted = line.split("#")[0].strip().partition("==")
    try:
        if name and version(name) != wanted:
            sys.exit(1)
    except PackageNotFoundError:
        sys.exit(1)
PYTHON
}

if [ -e "$done_stamp" ] && runs; then exit 0; fi
if satisfied && runs; then
  mark "$done_stamp"
  exit 0
fi

# A virtual environment names its own folder: after a move it has to be made again.
if [ -e "$env" ] && [ ! -L "$env" ] && ! "$env/bin/python" -m pip --version > /dev/null 2>&1; then
  say "$folder does not work any more; making it again"
  rm -rf "$env"
fi
mkdir -p "$root/build"
if [ ! -e "$env" ]; then
  python=/usr/bin/python3
  [ -x $python ] || python=python3
  say "making the Python environment $folder"
  "$python" -m venv "$env" || die "$python -m venv failed; is the Debian package python3-venv installed?"
fi
say "installing wheels into $folder: $(entries "$list" | xargs)"
"$env/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --only-binary :all: \
  -r "$list" || die "pip could not install the wheels of $name into $folder (see above)"
runs || die "$folder was made but does not run; remove it and try again"
mark "$done_stamp"
