"""The wheel, as a new user meets it: installed into an empty environment, with nothing of the build in sight, the examples of
python/README.md run. `make wheel-test`.

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


def blocks(language):
    with open(os.path.join(ROOT, "python", "README.md")) as file:
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
    wheel, work = WHEEL, os.path.join(folder, "work")
    os.mkdir(work)
    call(folder, sys.executable, "-m", "venv", os.path.join(folder, "env"))
    shutil.copy(wheel, work)
    onnx.save(tiny_models.small_net(), os.path.join(work, "model.onnx"))
    (first,) = blocks("sh")
    printed = call(folder, "bash", "-euc", first)
    assert re.search(r"^predicted .* measured ", printed, re.MULTILINE), printed
    examples = blocks("python")
    assert len(examples) >= 4
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

    # Whatever it loads, it loads from the wheel or from the C library.
    maps = call(folder, "python", "-c", "import collage; collage.load('model.onnx').compile(); print(open('/proc/self/maps').read())")
    mapped = {line.split()[-1] for line in maps.splitlines() if ".so" in line}
    outside = {path for path in mapped if not path.startswith((folder, "/proc", "/memfd"))}
    allowed = re.compile(r"/(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|libz|libexpat|libcrypto|libffi|libuuid)[.-]|/python3")
    assert not (wrong := [path for path in outside if not allowed.search(path)]), wrong
    assert any("libcollage.so" in path for path in mapped) and any("libopenvino_intel_cpu_plugin" in path for path in mapped), mapped


def check_no_build_paths(folder):
    """No library looks for others in the build or the source tree."""
    shutil.unpack_archive(WHEEL, folder, "zip")
    seen = 0
    for path in glob.glob(os.path.join(folder, "**"), recursive=True):
        if not os.path.isfile(path) or open(path, "rb").read(4) != b"\x7fELF":
            continue
        seen += 1
        dynamic = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
        paths = re.findall(r"R(?:UN)?PATH.*\[(.*)\]", dynamic)
        assert all(part.startswith("$ORIGIN") for line in paths for part in line.split(":") if part), (path, paths)
    assert seen >= 10, f"only {seen} libraries"


if __name__ == "__main__":
    found = [argument for argument in sys.argv[1:] if argument.endswith(".whl")] or glob.glob(os.path.join(ROOT, "dist", "collage_compiler-*.whl"))
    assert len(found) == 1, f"one wheel is wanted, not {found}"
    WHEEL = os.path.abspath(found[0])
    sys.exit(checks.run([check_no_build_paths, check_examples], [a for a in sys.argv[1:] if not a.endswith(".whl")]))
