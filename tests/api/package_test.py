"""The Debian package holds what is promised, and runs from wherever it is unpacked.

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import glob
import os
import re
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests"))

import checks

CPACK = os.path.join(ROOT, "build", "env", "bin", "cpack")
BUILD = os.path.dirname(os.environ["COLLAGE_BIN"])
EXPECTED = ("usr/bin/collage", "usr/lib/libcollage.so", "usr/include/collage/collage.h", "usr/include/collage/version.h",
            "usr/include/collage/module.h", "usr/include/collage/expression.h", "usr/include/collage/passes.h",
            "usr/lib/libcollage_runtime.so", "usr/include/collage/program.h", "usr/include/collage/runtime.h",
            "usr/lib/cmake/collage/collageConfig.cmake", "usr/share/doc/collage/copyright",
            "usr/share/collage/peers/peer.py", "usr/share/collage/costs/zen4_2_threads.costs", "usr/share/bash-completion/completions/collage")


def call(*command, **environment):
    result = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
    assert result.returncode == 0, f"{command[0]}: {result.stderr[-2000:] or result.stdout[-2000:]}"
    return result.stdout


def missing_libraries(path):
    return [line for line in call("ldd", path).splitlines() if "not found" in line]


def check_package(folder):
    """Made, listed, unpacked elsewhere and run; its libraries are those that came along, or Debian's."""
    call(CPACK, "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", folder)
    (package,) = glob.glob(os.path.join(folder, "collage_*.deb"))
    listed = {line.split()[5].removeprefix("./") for line in call("dpkg-deb", "-c", package).splitlines()}
    assert not (absent := [path for path in EXPECTED if path not in listed]), absent
    assert not (foreign := [path for path in listed if path and not path.startswith("usr/") and path != "usr"]), foreign
    fields = call("dpkg-deb", "-f", package)
    assert re.search(r"^Package: collage$", fields, re.MULTILINE), fields
    depends = re.search(r"^Depends: (.*)$", fields, re.MULTILINE).group(1)
    assert all(name in depends for name in ("libc6", "libsqlite3-0", "binutils")), depends

    root, cache = os.path.join(folder, "root"), os.path.join(folder, "cache")
    call("dpkg", "-x", package, root)
    collage = os.path.join(root, "usr", "bin", "collage")
    for path in [collage, os.path.join(root, "usr", "lib", "libcollage.so"), *glob.glob(os.path.join(root, "usr/lib/collage/*.so*"))]:
        assert not (missing := missing_libraries(path)), (path, missing)
    linked = re.findall(r"(lib(?:dnnl|openvino|Halide)\S*) => (\S+)", call("ldd", os.path.join(root, "usr", "lib", "libcollage.so")))
    assert all(os.path.realpath(path).startswith(os.path.realpath(root)) for _, path in linked), linked
    assert call(collage, "--version").startswith("collage ")
    here = call(os.environ["COLLAGE_BIN"], "targets", COLLAGE_CACHE=cache)
    assert call(collage, "targets", COLLAGE_CACHE=cache) == here, "other targets than in the build folder"
    call("bash", "-n", os.path.join(root, "usr/share/bash-completion/completions/collage"))


if __name__ == "__main__":
    sys.exit(checks.run([check_package], sys.argv[1:]))
