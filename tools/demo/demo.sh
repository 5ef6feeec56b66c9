#!/bin/bash
# The demo: what `make demo` shows after the build. Generates ResNet-50 (seeded weights), partitions it by measured cost (a few minutes the
# first time, seconds afterwards), checks the result against the reference interpreter and prints the summary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
model=build/demo/resnet50.onnx
[ -f "$model" ] || build/env/bin/python models/generate.py resnet50 -o build/demo
build/release/collage targets
build/release/collage verify "$model"
build/release/collage run "$model"
