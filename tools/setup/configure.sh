#!/bin/bash
# configure.sh PRESET: configures build/PRESET unless that was done already for this environment; ninja itself reruns
# cmake when a CMake file changes or a source file appears.
set -euo pipefail
# shellcheck source=tools/setup/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

preset=$1
done_stamp=$(stamp "configure-$preset" "$root/requirements.txt" "$root/CMakePresets.json" "$root/tools/setup/packages.txt")
if [ -e "$done_stamp" ] && [ -e "$root/build/$preset/build.ninja" ]; then exit 0; fi
cd "$root"
build/env/bin/cmake --preset "$preset"
mark "$done_stamp"
