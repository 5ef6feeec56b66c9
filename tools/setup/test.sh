#!/bin/bash
# test.sh [ARGUMENT...] --test-dir BUILD [ARGUMENT...]: ctest with these arguments, then its slowest tests, what it skipped and
# why, and how to run again what failed. The exit status is ctest's. COLLAGE_CHECK_SEED: where kernels and programs are checked on other inputs than the suite's.
set -uo pipefail
# shellcheck source=tools/setup/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build=
for ((i = 1; i < $#; ++i)); do
  if [ "${!i}" = --test-dir ]; then
    next=$((i + 1))
    build=$(realpath "${!next}")
  fi
done
# A suite that draws other inputs each time fails for nobody's change.
export COLLAGE_CHECK_SEED=${COLLAGE_CHECK_SEED:-20261130}
results=$build/test_results.xml
rm -f "$results"
# What a test prints in front of the reason why it was skipped is more than ctest keeps of it unasked.
"$root/build/env/bin/ctest" --output-on-failure --no-tests=error --output-junit "$results" --test-output-size-passed 65536 "$@"
status=$?
if [ -e "$results" ]; then "$root/build/env/bin/python" "$root/tools/setup/test_summary.py" "$results"; fi
exit $status
