#!/bin/bash
# distros.sh [NAME...]: builds the working tree and runs the demo and a smoke test in a fresh system of each distribution named
# (default: all below), a folder build/distros/NAME that debootstrap makes. Prints a line for each; exit status 1 if one failed.
# WERROR=ON: warnings are errors there too. COLLAGE_CCACHE: a folder of ccache's that all of them use. FRESH=1: the folders are made anew. Needs root.
set -euo pipefail
# shellcheck source=tools/setup/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

debian=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
ubuntu=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
declare -A title=([bookworm]="Debian 12" [trixie]="Debian 13" [noble]="Ubuntu 24.04")
declare -A mirror=([bookworm]=$debian [trixie]=$debian [noble]=$ubuntu)
declare -A components=([bookworm]=main [trixie]=main [noble]=main,universe)

[ "$(id -u)" -eq 0 ] || die "debootstrap and chroot need root"

# As this machine reaches its registries: the certificates it trusts, proxies, where pip looks.
registries() {
  local system=$1 file
  for file in /etc/ssl/certs/ca-certificates.crt /etc/pip.conf /etc/resolv.conf /etc/hosts $(grep -lsri proxy /etc/apt/apt.conf.d || true); do
    if [ -e "$file" ]; then cp -L --remove-destination "$file" "$system$file"; fi
  done
}

make_system() {
  local name=$1 system=$2 script=/usr/share/debootstrap/scripts/$1
  [ -e "$script" ] || script=/usr/share/debootstrap/scripts/$([ "$name" = noble ] && echo gutsy || echo sid)
  rm -rf "$system"
  debootstrap --variant=minbase --components="${components[$name]}" --include=ca-certificates,make,git \
    "$name" "$system" "${mirror[$name]}" "$script" && registries "$system" && touch "$system/made"
}

# The working tree as git sees it, in place of what was copied before; what was built there stays.
copy_sources() {
  mkdir -p "$1"
  find "$1" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
  git -C "$root" ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do [ ! -e "$root/$file" ] || printf '%s\0' "$file"; done |
    tar -C "$root" --null -T - -c | tar -C "$1" -x
}

# In a namespace of mounts of its own, so that nothing stays mounted.
enter() {
  local system=$1
  shift
  SYSTEM=$system CACHE=${COLLAGE_CCACHE:-} unshare --mount bash -euc '
    mount -t proc proc "$SYSTEM/proc"
    mount --rbind /dev "$SYSTEM/dev"
    mount --rbind /sys "$SYSTEM/sys"
    cache=
    if [ -n "$CACHE" ]; then
      mkdir -p "$SYSTEM/ccache"
      mount --bind "$CACHE" "$SYSTEM/ccache"
      cache=CCACHE_DIR=/ccache
    fi
    pip=$(env | sed -n "/^PIP_\(INDEX_URL\|CERT\|DEFAULT_TIMEOUT\)=/p; /^SSL_CERT_FILE=/p")
    exec chroot "$SYSTEM" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 ${WERROR:+WERROR=$WERROR} $cache $pip "$@"' enter "$@"
}

try() {
  local name=$1 system=$2
  if [ -n "${FRESH:-}" ] || [ ! -e "$system/made" ]; then make_system "$name" "$system" || return; fi
  # At the path that it has here, so that ccache knows what was compiled here with the same compiler.
  copy_sources "$system$root" && enter "$system" bash -c "cd $root && make build && bash tools/setup/smoke.sh && make demo"
}

bash "$root/tools/setup/packages.sh" "$root/tools/setup/packages-distros.txt"
mkdir -p "$root/build/distros"
failed=0
for name in "${@:-bookworm trixie noble}"; do
  for name in $name; do
    [ -n "${title[$name]:-}" ] || die "no distribution is called $name: ${!title[*]}"
    log=$root/build/distros/$name.log
    begin=$SECONDS
    if try "$name" "$root/build/distros/$name" > "$log" 2>&1; then
      say "${title[$name]}: passed in $((SECONDS - begin)) s"
    else
      failed=1
      say "${title[$name]}: FAILED after $((SECONDS - begin)) s, see $log: $(tail -n 1 "$log")"
    fi
  done
done
exit $failed
