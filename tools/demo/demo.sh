#!/bin/bash
# The demo: what `make demo` shows after the build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build/release/collage --version
