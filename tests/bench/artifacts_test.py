"""artifacts.py tells programs as files that keep their promises from those that do not, by what a stand-in for the command says.

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import json
import os
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests"))

import checks

FIGURES = {"bytes": 300e6, "load_ms": 45, "map_ms": 15, "check_ms": 10, "packed_bytes": 100e6, "arena_bytes": 10e6, "resident_bytes": 120e6}
# Writes an output in the folder of --save-outputs, and figures in the file of --json.
COMMAND = """#!{python}
import json, os, sys
verb, flags = sys.argv[1], dict(zip(sys.argv[3::2], sys.argv[4::2]))
if {fails} and verb == "compile":
    sys.exit("collage: amx: its kernels cannot be saved")
os.makedirs(flags["--save-outputs"])
with open(os.path.join(flags["--save-outputs"], "0_y.npy"), "w") as file:
    file.write("bits" if verb == "compile" else {bits!r})
if verb == "run":
    with open(flags["--json"], "w") as file:
        json.dump({{"artifact": {figures}}}, file)
"""


def judged(folder, *flags, bits="bits", fails=False, **changed):
    """The exit status and the lines below the heading."""
    command, model = os.path.join(folder, "collage"), os.path.join(folder, "net.onnx")
    with open(command, "w") as file:
        file.write(COMMAND.format(python=sys.executable, fails=fails, bits=bits, figures=json.dumps(FIGURES | changed)))
    os.chmod(command, 0o755)
    with open(model, "w") as file:
        file.write("a model")
    result = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "artifacts.py"), model, "--runs", "1", "--collage", command, *flags],
                            capture_output=True, text=True)
    assert not result.stderr, result.stderr
    return result.returncode, result.stdout.splitlines()[1:]


def check_good(folder):
    status, lines = judged(folder)
    assert status == 0 and len(lines) == 1, lines
    assert lines[0].split() == ["net.onnx", "same", "45.0", "15.0", "10.0", "30.0", "120.0", "100.0", "10.0", "1.09", "300.0", "0.0"], lines


def check_wrong(folder):
    for changed, said in (({"load_ms": 70}, "start-up takes 55.0 ms beyond mapping, not 50"), ({"bits": "others"}, "other bits"),
                          ({"resident_bytes": 127e6}, "127.0 MB resident, not 1.15 times 110.0")):
        status, lines = judged(folder, **changed)
        assert status == 1 and len(lines) == 2 and said in lines[1], lines


def check_small(folder):
    """A small program may take 8 MB beside its weights."""
    small = {"packed_bytes": 1e6, "arena_bytes": 1e6}
    assert judged(folder, **small, resident_bytes=9.9e6)[0] == 0
    assert judged(folder, **small, resident_bytes=10.1e6)[0] == 1


def check_failure(folder):
    status, lines = judged(folder, fails=True)
    assert status == 1 and lines == ["net.onnx  collage: amx: its kernels cannot be saved"], lines


def check_flags(folder):
    """What stands behind -- is compile's alone."""
    assert judged(folder, "--start", "20")[0] == 1 and judged(folder, "--", "--targets", "onednn")[0] == 0


if __name__ == "__main__":
    sys.exit(checks.run((check_good, check_wrong, check_small, check_failure, check_flags), sys.argv[1:]))
