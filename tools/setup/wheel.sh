#!/bin/bash
# wheel.sh: packs what build/release holds as a wheel that needs nothing of this machine: dist/collage_compiler-*.whl.
# auditwheel copies the Debian libraries in; those that come from wheels are there already (cmake/python.cmake), but for libHalide.
# The tag is that of the oldest C library that all of them run with: manylinux_2_34 on Debian 12.
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
# Of the libraries that auditwheel copies, what asks for too much is taken from here (portable_libraries.py).
mkdir "$raw/libraries"
cp "$(ldd build/release/libcollage.so | sed -n 's/.* => \(.*libspdlog[^ ]*\) .*/\1/p')" "$raw/libraries"
"$env/bin/python" tools/setup/portable_libraries.py "$raw/libraries"
rm -f dist/collage_compiler-*.whl
LD_LIBRARY_PATH=$raw/libraries "$env/bin/auditwheel" repair --plat auto --exclude libHalide.so --wheel-dir dist "$raw"/*.whl ||
  die "auditwheel could not add the libraries that the wheel needs (see above)"
say "$(ls dist/collage_compiler-*.whl): $(du -h dist/collage_compiler-*.whl | cut -f1)"
