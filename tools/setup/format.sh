#!/bin/bash
# format.sh: clang-format-14 over every C++ file that git knows or would add.
set -euo pipefail
# shellcheck source=tools/setup/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"
git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cc' |
  while IFS= read -r -d '' file; do [ ! -f "$file" ] || printf '%s\0' "$file"; done |
  xargs -0 -r -n 16 -P "$(nproc)" clang-format-14 -i
