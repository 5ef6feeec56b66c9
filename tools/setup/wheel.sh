#!/bin/bash
# wheel.sh: packs what build/release holds as a wheel that needs nothing of this machine but its C library: dist/collage_compiler-*.whl.
# auditwheel copies the Debian libraries in; those that come from wheels are there already (cmake/python.cmake).
set -euo pipefail
# shellcheck source=tools/setup/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

env=$root/build/env
raw=$root/build/wheel
export PATH=$env/bin:$PATH
rm -rf "$raw"
say "packing the Python package"
"$env/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir "$raw" "$root" ||
  die "the wheel could not be built (see above)"
rm -f dist/collage_compiler-*.whl
"$env/bin/auditwheel" repair --plat manylinux_2_36_x86_64 --wheel-dir dist "$raw"/*.whl ||
  die "auditwheel could not add the libraries that the wheel needs (see above)"
say "$(ls dist/collage_compiler-*.whl): $(du -h dist/collage_compiler-*.whl | cut -f1)"
