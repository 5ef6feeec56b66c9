"""Prepares libraries of a wheel for systems older than the one that built them.

    python tools/setup/portable_libraries.py FOLDER

Two functions that Collage and spdlog call have a newer version in Debian 12's C and C++ libraries than in those of RHEL 9 (glibc 2.34, GCC 11),
and an older one that does the same: an entry in a library's list of needed versions is given the older name, so that the loader finds it anywhere.
What needs libHalide looks for it in the package halide too, which pip installs beside.
"""

import collections
import glob
import os
import struct
import subprocess
import sys

from elftools.elf.elffile import ELFFile

# version: (the older one, functions that it may be used for)
OLDER = {
    b"GLIBC_2.35": (b"GLIBC_2.2.5", {"hypot"}),  # the older one sets errno, too
    b"GLIBCXX_3.4.30": (b"GLIBCXX_3.4.11", {"_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"}),
}
HALIDE = "$ORIGIN/../../halide/lib64"  # from collage/lib


def system_v_hash(name):
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high
    return value


def users_of_versions(elf):
    """{version's index: the undefined symbols that have it}"""
    versions, users = elf.get_section_by_name(".gnu.version"), collections.defaultdict(set)
    for index, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
        if symbol["st_shndx"] == "SHN_UNDEF":
            users[versions.get_symbol(index)["ndx"]].add(symbol.name)
    return users


def rebind(path):
    """Gives versions that OLDER names the older name; returns what was changed."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
        file.seek(0)
        elf = ELFFile(file)
        needs = elf.get_section_by_name(".gnu.version_r")
        if needs is None:
            return []
        strings, users = elf.get_section(needs["sh_link"]).data(), users_of_versions(elf)
        at, changed, more = needs["sh_offset"], [], 1
        while more:
            _, count, _, first, more = struct.unpack_from("<HHIII", data, at)
            entry = at + first
            for _ in range(count):
                _, _, index, name, step = struct.unpack_from("<IHHII", data, entry)
                version = strings[name:strings.index(b"\0", name)]
                if version in OLDER:
                    older, functions = OLDER[version]
                    if others := users[index] - functions:
                        sys.exit(f"{path}: {', '.join(sorted(others))} of {version.decode()}: no older version is known")
                    where = strings.find(b"\0" + older + b"\0") + 1
                    if where == 0:
                        sys.exit(f"{path}: {older.decode()} is not among its strings")
                    struct.pack_into("<I", data, entry, system_v_hash(older))
                    struct.pack_into("<I", data, entry + 8, where)
                    changed.append(version.decode())
                entry += step
            at += more
    if changed:
        with open(path, "wb") as file:
            file.write(data)
    return changed


def main():
    folder = sys.argv[1]
    for path in sorted(glob.glob(os.path.join(folder, "**"), recursive=True)):
        if not os.path.isfile(path) or os.path.islink(path):
            continue
        with open(path, "rb") as file:
            if file.read(4) != b"\x7fELF":
                continue
            dynamic = ELFFile(file).get_section_by_name(".dynamic")
            needed = [tag.needed for tag in dynamic.iter_tags("DT_NEEDED")]
        if "libHalide.so" in needed:
            subprocess.run(["patchelf", "--add-rpath", HALIDE, path], check=True)
        if changed := rebind(path):
            print(f"{os.path.relpath(path, folder)}: older names for {', '.join(changed)}")


if __name__ == "__main__":
    main()
