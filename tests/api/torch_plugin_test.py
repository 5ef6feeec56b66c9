"""The backend of PyTorch (plugins/torch) as a plugin: builds against the installed headers, every operator that it claims against the
reference, chains of them, and a model on it alone and beside others.

    python tests/api/torch_plugin_test.py

Takes the build that COLLAGE_BIN lies in (default build/release). COLLAGE_TORCH=DIR names a site-packages folder that holds torch; without
it everything is skipped. Prints "N passed, 0 failed" or what went wrong.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(HERE, "..", "cli"), os.path.join(ROOT, "models")]

import checks
import command
import generate
import tiny_models
from install_test import BUILD, CMAKE, call

TORCH = os.path.join(os.environ.get("COLLAGE_TORCH", ""), "torch")

# Modules, and how many kernels they are: calls follow in place where nothing else reads the array, and its shape stays.
CHAINS = {
    "convolution": ("""%w: Tensor[(12, 2, 3, 3), float32], %b: Tensor[(12), float32], %x: Tensor[(2, 8, 15, 13), float32]""", """
  %0 = nn.conv2d(%x, %w, strides=[2, 1], padding=[1, 2, 1, 2], dilation=[1, 2], groups=4);
  %1 = nn.bias_add(%0, %b);
  clip(%1, a_min=0f, a_max=0.5f)""", 1),
    "residual": ("""%x: Tensor[(1, 8, 9, 9), float32], %w: Tensor[(8, 8, 1, 1), float32]""", """
  %0 = nn.conv2d(%x, %w);
  %1 = add(%x, %0);
  nn.relu(%1)""", 1),
    "squared": ("""%x: Tensor[(7, 20), float32], %w: Tensor[(33, 20), float32]""", """
  %0 = nn.dense(%x, %w);
  %1 = multiply(%0, %0);
  nn.gelu(%1)""", 3),
    "widened": ("""%x: Tensor[(1, 20), float32], %w: Tensor[(33, 20), float32], %y: Tensor[(6, 33), float32]""", """
  %0 = nn.dense(%x, %w);
  add(%0, %y)""", 2),
}


class Plugin:
    """Built once, for all checks."""

    def __init__(self, folder):
        self.prefix, self.built = os.path.join(folder, "prefix"), os.path.join(folder, "built")
        call(CMAKE, "--install", BUILD, "--prefix", self.prefix)
        call(CMAKE, "-S", os.path.join(ROOT, "plugins", "torch"), "-B", self.built, f"-Dcollage_DIR={self.prefix}/lib/cmake/collage",
             f"-DTORCH={TORCH}")
        call(CMAKE, "--build", self.built)
        self.path = os.path.join(self.built, "libcollage_torch.so")
        self.cache = os.path.join(folder, "cache")

    def report(self, folder, *arguments):
        command.COLLAGE = os.path.join(self.prefix, "bin", "collage")
        result = command.run([*arguments, "--plugin", self.path, "--effort", "fast", "--json", "report.json"], folder, cache=self.cache)
        assert result.returncode == 0, result
        with open(os.path.join(folder, "report.json")) as file:
            return json.load(file)


def check_operators(folder):
    """Every case of every operator that it claims: those in calls.cc, all of which it has."""
    output = subprocess.run([os.path.join(BUILD, "tests", "backend_plugin_test")], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env=os.environ | {"COLLAGE_TEST_PLUGIN": f"{PLUGIN.path} torch"})
    assert output.returncode == 0 and "1 SKIPPED" not in output.stdout, output.stdout[-4000:]
    taken = set(re.search(r"^\d+ cases of (.*)$", output.stdout, re.MULTILINE)[1].split())
    with open(os.path.join(ROOT, "plugins", "torch", "calls.cc")) as file:
        claimed = {name for names in re.findall(r"names = \{(.*?)\};", file.read(), re.DOTALL) for name in re.findall('"(.*?)"', names)}
    assert taken == claimed, (claimed - taken, taken - claimed)


def check_chains(folder):
    for name, (parameters, body, kernels) in CHAINS.items():
        tiny_models.write(folder, name + ".relay", f'#[version = "0.0.5"]\ndef @main({parameters}) {{{body}\n}}\n')
        report = PLUGIN.report(folder, "verify", name + ".relay", "--targets", "torch", "--threads", "2")
        assert [kernel["target"] for kernel in report["kernels"]] == ["torch"] * kernels, report["kernels"]


def check_model(folder):
    """Verified alone, and in the same search as native, which measures kernels of both."""
    path = generate.generate("mobilenet_v2", folder, small=True)[0]
    alone = PLUGIN.report(folder, "verify", path, "--targets", "torch")
    ran = {op["op"] for kernel in alone["kernels"] if kernel["target"] == "torch" for op in kernel["ops"]}
    assert {"nn.conv2d", "nn.global_avg_pool2d", "nn.dense"} <= ran, ran
    both = PLUGIN.report(folder, "verify", path, "--targets", "torch,native")
    used = {kernel["target"] for kernel in both["kernels"]}
    rivals = {row["target"] for kernel in both["kernels"] for row in kernel["alternatives"] if row.get("cost_ms")}
    assert used <= {"torch", "native", "reference"} and {"torch", "native"} <= used | rivals, both["kernels"]


def main(arguments):
    global PLUGIN
    if not os.path.exists(os.path.join(TORCH, "lib", "libtorch_cpu.so")):
        print("SKIPPED torch plugin: COLLAGE_TORCH names no folder with torch\n1 passed, 0 failed")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        PLUGIN = Plugin(folder)
        return checks.run([check_operators, check_chains, check_model], arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
