#!/bin/bash
# packages.sh LIST...: makes sure the Debian packages named in the lists are installed.
# Asks dpkg first and calls apt only for what is missing, so that a user without root whose machine has everything is
# never asked for a password.
set -euo pipefail
# shellcheck source=tools/setup/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

command -v dpkg-query > /dev/null ||
  die "this set-up knows Debian and Ubuntu only; install by hand the equivalents of: $(entries "$@" | xargs)"

missing=()
while read -r package; do
  status=$(dpkg-query -W -f='${db:Status-Abbrev}\n' "$package" 2> /dev/null || true)
  grep -q '^.i' <<< "$status" || missing+=("$package")
done < <(entries "$@")
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo > /dev/null ||
    die "missing Debian packages and neither root nor sudo; ask root for: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
log=$root/build/setup/apt.log
mkdir -p "$(dirname "$log")"
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -o DPkg::Lock::Timeout=300 "$@" >> "$log" 2>&1; }
install() { apt install --no-install-recommends "${missing[@]}"; }

say "installing ${#missing[@]} Debian packages: ${missing[*]}"
: > "$log"
# The package index of a fresh machine is empty or stale: refresh it first, and go on with the one there is if that fails.
apt update || say "apt-get update failed; trying with the package index as it is"
install || {
  why=$(grep -m1 '^E: ' "$log" || true)
  die "apt-get could not install ${missing[*]}: ${why:-see $log}"
}
