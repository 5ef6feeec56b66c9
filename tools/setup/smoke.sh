#!/bin/bash
# smoke.sh: whether what was built here works: a small model verified, written to a file and run from it, and the Python package.
set -euo pipefail
# shellcheck source=tools/setup/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

collage=build/release/collage
model=build/demo/mnist.onnx
build/env/bin/python models/generate.py mnist -o build/demo
$collage verify $model
$collage compile $model -o build/demo/mnist.collage
$collage run build/demo/mnist.collage
ninja -C build/release collage_python collage_python_stub collage_python_demo > build/setup/python.log || die "the Python package could not be built: see build/setup/python.log"
build/env/bin/python tests/python/package_test.py check_results check_artifacts check_refusals
PYTHONPATH=build/release/python build/env/bin/python -m collage demo
say "$(sed -n 's/^PRETTY_NAME=//p' /etc/os-release), $(g++ --version | head -n 1), $(build/env/bin/python --version): all works"
