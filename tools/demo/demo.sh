#!/bin/bash
# The demo: what `make demo` shows after the build. Generates ResNet-50 (seeded weights), runs it, which answers in seconds; compares every output
# with the reference interpreter; then measures for a minute and runs the plan that this finds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
model=build/demo/resnet50.onnx
[ -f "$model" ] || build/env/bin/python models/generate.py resnet50 -o build/demo
show() { echo "\$ collage $*" && build/release/collage "$@"; }
show targets
show run "$model"
show verify "$model"
show run "$model" --budget 60
