"""The wheel, as a new user meets it: installed into an empty environment, with nothing of the build in sight, its demo and the examples
of README.md and python/README.md run. `make wheel-test`.

    python tests/python/wheel.py [WHEEL]

COLLAGE_TORCH=DIR names a site-packages folder that holds torch; without it the example for PyTorch is skipped. Prints
"N passed, 0 failed" or what went wrong.
"""

import glob
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests", "cli")]

import onnx

import checks
import tiny_models

TORCH = os.environ.get("COLLAGE_TORCH")
PATH = "/usr/bin:/bin"  # the linker of binutils is there


# Loads an artifact by the C interface, and says what is in the process then.
RUNTIME = """
import ctypes, subprocess, sys
subprocess.run(["collage", "compile", "model.onnx", "-o", "onednn.collage", "--targets", "onednn"], check=True)
runtime = ctypes.CDLL(sys.argv[1] + "/collage/lib/libcollage_runtime.so.0")
runtime.collage_last_error.restype = ctypes.c_char_p
program, context = ctypes.c_void_p(), ctypes.c_void_p()
assert runtime.collage_program_load(b"onednn.collage", ctypes.byref(program)) == 0, runtime.collage_last_error()
assert runtime.collage_context_create(program, ctypes.byref(context)) == 0, runtime.collage_last_error()
print({line.split()[-1] for line in open("/proc/self/maps") if ".so" in line})
"""


def packages_of(folder):
    (packages,) = glob.glob(os.path.join(folder, "env", "lib", "python3*", "site-packages"))
    return packages


def blocks(language, page="python/README.md"):
    with open(os.path.join(ROOT, page)) as file:
        return re.findall(rf"^```{language}\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)


def call(folder, *arguments, **environment):
    """A command's output, with what a fresh shell has in its environment and the new environment's programs first."""
    plain = {"PATH": os.path.join(folder, "env", "bin") + ":" + PATH, "HOME": folder}
    plain |= {key: os.environ[key] for key in ("LANG", "TMPDIR", "PIP_INDEX_URL", "PIP_CERT", "SSL_CERT_FILE") if key in os.environ}
    result = subprocess.run(arguments, cwd=os.path.join(folder, "work"), env=plain | environment, stdin=subprocess.DEVNULL, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode == 0, f"{' '.join(arguments)[:300]} gave {result.returncode}:\n{result.stdout[-4000:]}"
    return result.stdout


def check_examples(folder):
    work = os.path.join(folder, "work")
    os.mkdir(work)
    call(folder, sys.executable, "-m", "venv", os.path.join(folder, "env"))
    shutil.copy(WHEEL, work)
    onnx.save(tiny_models.small_net(), os.path.join(work, "model.onnx"))
    (first,) = blocks("sh")
    printed = call(folder, "bash", "-euc", first)
    assert re.search(r"^not searched, .* measured [\d.]+ ms .*a first answer", printed, re.MULTILINE), printed
    printed = call(folder, "python", "-m", "collage", "demo")
    assert ": verified against the reference interpreter" in printed and re.search(r"^mnist ", printed, re.MULTILINE), printed
    # The first example of README.md, whose second one is a line of what python/README.md shows.
    examples = [blocks("python", "README.md")[0], *blocks("python")]
    assert len(examples) >= 5
    for example in examples:
        if "import torch" in example:
            if not TORCH:
                print("SKIPPED check_examples (PyTorch): COLLAGE_TORCH names no folder with torch")
                continue
            with open(os.path.join(packages_of(folder), "torch.pth"), "w") as file:
                file.write(TORCH + "\n")
            printed = call(folder, "python", "-c", example)
            assert "torch.Size([8, 10])" in printed and "runs in PyTorch" not in printed, printed
        else:
            printed = call(folder, "python", "-c", example)
    assert os.path.getsize(os.path.join(work, "plan.html")) > 10000

    # Other languages have the library that runs artifacts, with its kernels and without the compiler.
    told = call(folder, "python", "-c", RUNTIME, packages_of(folder))
    assert "libcollage_kernels_onednn" in told and "libcollage.so" not in told and "libHalide" not in told, told

    # Whatever it loads, it loads from the wheels or from the C and C++ libraries. Drivers of OpenCL devices are the machine's, and left out
    # here; libgomp is the application's, whose settings runs leave as they are (src/runtime/team_region.cc).
    maps = call(folder, "python", "-c", "import collage; collage.load('model.onnx').compile(); print(open('/proc/self/maps').read())",
                OCL_ICD_VENDORS=work)
    mapped = {line.split()[-1] for line in maps.splitlines() if ".so" in line}
    outside = {path for path in mapped if not path.startswith((folder, "/proc", "/memfd"))}
    allowed = re.compile(r"/(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|libgomp|libz|libexpat|libcrypto|libffi|libuuid)[.-]|/python3")
    assert not (wrong := [path for path in outside if not allowed.search(path)]), wrong
    assert any("libcollage.so" in path for path in mapped) and any("libopenvino_intel_cpu_plugin" in path for path in mapped), mapped


def libraries(folder):
    """The libraries and programs in the wheel, unpacked."""
    shutil.unpack_archive(WHEEL, folder, "zip")
    found = [path for path in glob.glob(os.path.join(folder, "**"), recursive=True)
             if os.path.isfile(path) and open(path, "rb").read(4) == b"\x7fELF"]
    assert len(found) >= 10, f"only {found}"
    return found


# What the oldest systems have: RHEL 9's glibc and GCC 11.
NEWEST = {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29), "CXXABI": (1, 3, 13), "GCC": (7, 0, 0)}


def check_platform(folder):
    """What its name says is so, by auditwheel and by each library's list of needed versions; an upload to PyPI may have 100 MB."""
    assert "manylinux_2_34_x86_64" in os.path.basename(WHEEL), WHEEL
    assert os.path.getsize(WHEEL) < 100e6, os.path.getsize(WHEEL)
    for path in libraries(folder):
        needed = subprocess.run(["readelf", "--version-info", path], capture_output=True, text=True, check=True).stdout
        needed = needed[needed.find("Version needs section"):] if "Version needs section" in needed else ""
        for kind, version in re.findall(r"Name: (\w+?)_([\d.]+)\b", needed):
            assert kind not in NEWEST or tuple(map(int, version.split("."))) <= NEWEST[kind], f"{path} needs {kind}_{version}"


def check_no_build_paths(folder):
    """No library looks for others in the build or the source tree."""
    for path in libraries(folder):
        dynamic = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
        paths = re.findall(r"R(?:UN)?PATH.*\[(.*)\]", dynamic)
        assert all(part.startswith("$ORIGIN") for line in paths for part in line.split(":") if part), (path, paths)


if __name__ == "__main__":
    found = [argument for argument in sys.argv[1:] if argument.endswith(".whl")] or glob.glob(os.path.join(ROOT, "dist", "collage_compiler-*.whl"))
    assert len(found) == 1, f"one wheel is wanted, not {found}"
    WHEEL = os.path.abspath(found[0])
    sys.exit(checks.run([check_platform, check_no_build_paths, check_examples], [a for a in sys.argv[1:] if not a.endswith(".whl")]))
