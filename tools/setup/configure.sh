#!/bin/bash
# configure.sh PRESET: configures build/PRESET unless that was done already for this environment; ninja itself reruns
# cmake when a CMake file changes or a source file appears. COLLAGE_TESTS=ON adds the tests, and
# COLLAGE_LONG_TESTS=ON the long ones, which a later call without them keeps; WERROR=ON or OFF sets whether warnings are errors.
set -euo pipefail
# shellcheck source=tools/setup/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

preset=$1
cache=$root/build/$preset/CMakeCache.txt
done_stamp=$(stamp "configure-$preset" "$root/requirements.txt" "$root/CMakePresets.json" "$root"/tools/setup/packages*.txt)
options=()
# want NAME VALUE: an option that this call sets; nothing to do where the cache has it so.
want() { grep -qs "^$1:BOOL=$2\$" "$cache" || options+=("-D$1=$2"); }
if [ -n "${COLLAGE_TESTS:-}" ]; then
  want COLLAGE_TESTS "$COLLAGE_TESTS"
elif [ ! -e "$cache" ]; then
  want COLLAGE_TESTS OFF
fi
if [ -n "${COLLAGE_LONG_TESTS:-}" ]; then want COLLAGE_LONG_TESTS "$COLLAGE_LONG_TESTS"; fi
if [ -n "${WERROR:-}" ]; then want COLLAGE_WERROR "$WERROR"; fi
if [ -e "$done_stamp" ] && [ -e "$root/build/$preset/build.ninja" ] && [ ${#options[@]} -eq 0 ]; then exit 0; fi
cd "$root"
build/env/bin/cmake --preset "$preset" "${options[@]}"
mark "$done_stamp"
