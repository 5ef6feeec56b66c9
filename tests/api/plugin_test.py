"""A backend out of tree (skeleton/) builds against the installed headers, loads with --plugin and is measured, with an operator of its own.

    python tests/api/plugin_test.py

Takes the build that COLLAGE_BIN lies in (default build/release). Prints "1 passed, 0 failed" or what went wrong.
"""

import json
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(HERE, "..", "cli")]

import checks
import command
import tiny_models
from install_test import BUILD, CMAKE, call

MODEL = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 64), float32]) {
  %0 = divide(%x, 4f);
  %1 = nn.relu(%0);
  %2 = nn.softmax(%1);
  skeleton.swish(%2)
}
"""
SWISH = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 64), float32]) {
  tanh(skeleton.swish(exp(%x)))
}
"""


def check(folder):
    prefix, project, built, work = (os.path.join(folder, name) for name in ("prefix", "project", "built", "work"))
    call(CMAKE, "--install", BUILD, "--prefix", prefix)
    shutil.copytree(os.path.join(HERE, "skeleton"), project)
    call(CMAKE, "-S", project, "-B", built, f"-Dcollage_DIR={prefix}/lib/cmake/collage", "-DCMAKE_BUILD_TYPE=Release")
    call(CMAKE, "--build", built)
    plugin = os.path.join(built, "libskeleton.so")

    os.mkdir(work)
    tiny_models.write(work, "model.relay", MODEL)
    tiny_models.write(work, "none.so", "no library")
    command.COLLAGE = os.path.join(prefix, "bin", "collage")
    run = lambda *arguments: command.run(arguments, work, cache=os.path.join(folder, "cache"))

    listed = run("targets", "--plugin", plugin)
    assert listed.returncode == 0 and "skeleton" in listed.stdout, listed
    assert "skeleton" not in run("targets").stdout
    # Partitioned text: its patterns, one of its own operator.
    text = run("partition", "model.relay", "--plugin", plugin, "--targets", "skeleton")
    for expected in ('Composite="skeleton.relu"', 'Composite="skeleton.scale"', "skeleton.swish(", "nn.softmax("):
        assert expected in text.stdout, text
    # Measured in processes of their own, verified, run, and right to the reference.
    result = run("verify", "model.relay", "--plugin", plugin, "--targets", "skeleton", "--json", "report.json")
    assert result.returncode == 0, result
    with open(os.path.join(work, "report.json")) as file:
        kernels = {op["op"]: kernel["target"] for kernel in json.load(file)["kernels"] for op in kernel["ops"]}
    assert kernels == {"divide": "skeleton", "nn.relu": "skeleton", "nn.softmax": "reference", "skeleton.swish": "skeleton"}, kernels

    # Its operator is emitted as others are: native runs it, fused.
    tiny_models.write(work, "swish.relay", SWISH)
    result = run("verify", "swish.relay", "--plugin", plugin, "--targets", "native", "--json", "report.json")
    assert result.returncode == 0, result
    with open(os.path.join(work, "report.json")) as file:
        kernels = [(kernel["target"], len(kernel["ops"])) for kernel in json.load(file)["kernels"]]
    assert kernels == [("native", 3)], kernels

    for flag, status, words in (("none.so", 5, "--plugin none.so: "), ("absent.so", 2, "--plugin absent.so: No such file or directory"),
                                (os.path.join(prefix, "lib", "libcollage.so"), 5, "is no plugin")):
        refused = run("run", "model.relay", "--plugin", flag)
        assert refused.returncode == status and words in refused.stderr and refused.stderr.count("\n") == 1, refused


if __name__ == "__main__":
    sys.exit(checks.run([check], sys.argv[1:]))
