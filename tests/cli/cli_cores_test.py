"""Programs on cpu:0 and on a CPU device beside it, which is cores of this machine.

    python tests/cli/cli_cores_test.py

Takes the build that COLLAGE_BIN lies in. Prints "N passed, 0 failed" or what went wrong.
"""

import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]

import checks
import command
import tiny_models
import workbench

CORE = max(os.sched_getaffinity(0))
DEVICES = f"cpu:0,little=cpu:1@{CORE}"
LITTLE = f"native -device=cpu:1 -cores={CORE}"
PLACED = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 64), float32]) {
  %0 = device_copy(exp(%x), from="little", to="cpu:0");
  tanh(%0)
}
"""


class Bench(workbench.Bench):
    def on(self, subcommand, name, *flags):
        report, printed = self.report(subcommand, name, "--effort", "fast", *flags)
        return report, {op["op"]: kernel["target"] for kernel in report["kernels"] for op in kernel["ops"]}, printed

    def refused(self, name, *flags, status):
        result = command.run(["run", name, *flags], self.folder, cache=self.cache)
        assert result.returncode == status and result.stderr.count("\n") == 1, result
        return result.stderr


def check_pinned(bench):
    """Nodes run on the cores that a pin names, by the device's name or the target; in the host's memory, so nothing is copied."""
    name = bench.save("net.onnx", tiny_models.small_net())
    for pin in ("soft.*=little", "soft.*=native -device=little", "soft.*=cpu:1"):
        report, targets, _ = bench.on("verify", name, "--targets", "native,native -device=little", "--devices", DEVICES, "--pin", pin,
                                      "--pin", "conv.*=cpu:0")
        assert targets["nn.softmax"] == LITTLE and targets["nn.conv2d"] == "native", targets
        assert not report["conversions"] and "devices" not in report["peak_memory"], report
    explained = bench.run("explain", name, "--targets", "native,native -device=little", "--devices", DEVICES, "--pin", "soft.*=little",
                          "--effort", "fast")
    assert " on cpu:1 |" in explained, explained
    report, targets, _ = bench.on("run", name, "--devices", DEVICES, "--targets", f"native,{LITTLE}", "--exclude", f"{LITTLE}:nn.softmax",
                                  "--exclude", "native -device=cpu:0:nn.conv2d")
    assert targets["nn.softmax"] != LITTLE and targets["nn.conv2d"] == LITTLE, targets


def check_placed(bench):
    """Placements of the text hold; the target may state the cores itself."""
    tiny_models.write(bench.folder, "placed.relay", PLACED)
    for flags in (("--targets", "native,native -device=little", "--devices", DEVICES),
                  ("--targets", f"native,native -device=cpu:1 -cores={CORE}", "--devices", "cpu:0,little=cpu:1")):
        report, targets, _ = bench.on("run", "placed.relay", *flags)
        assert targets["exp"] == LITTLE and targets["tanh"] in ("native", "reference") and not report["conversions"], (targets, report["conversions"])


def check_declared(bench):
    """Without targets all backends are on both, but those with threads of their own and the host."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, targets, _ = bench.on("run", name, "--devices", DEVICES, "--pin", "conv.*=little")
    assert LITTLE in report["targets"] and "native" in report["targets"], report["targets"]
    assert not any("-device" in target for target in report["targets"] if target.startswith(("openvino", "reference"))), report["targets"]
    assert f"-device=cpu:1 -cores={CORE}" in targets["nn.conv2d"], targets


def check_artifact(bench):
    """An artifact holds the cores."""
    tiny_models.write(bench.folder, "placed.relay", PLACED)
    flags = ("--targets", "native,native -device=little", "--devices", DEVICES, "--effort", "fast")
    bench.run("compile", "placed.relay", *flags, "-o", "placed.collage")
    explained = bench.run("explain", "placed.collage")
    assert "native_exp: stages on cpu:1 |" in explained, explained
    bench.run("run", "placed.collage")
    bench.run("verify", "placed.collage")
    said = command.run(["compile", "placed.relay", *flags, "--emit", "library", "-o", "placed.a"], bench.folder, cache=bench.cache)
    assert said.returncode == 0 and "since native_exp runs on native" in said.stdout, said


def check_errors(bench):
    name = bench.save("net.onnx", tiny_models.small_net())
    for flags, status, expected in (
        (("--devices", "cpu:0,cpu:1"), 2, "cpu:1 has no cores: state them, as --devices cpu:0,cpu:1@2-3 does"),
        (("--targets", "native -device=cpu:1"), 2, "cpu:1 has no cores"),
        (("--devices", "cpu:0@0"), 2, "'cpu:0@0': only CPU devices beside cpu:0 have cores of their own"),
        (("--devices", "cpu:0,cpu:1@x"), 2, "'x' states no cores: expected NUMBER or FIRST-LAST, joined by '+'"),
        (("--devices", "cpu:0,cpu:1@1023"), 5, "cpu:1: this process cannot use the cores 1023"),
        (("--targets", "native -cores=0"), 2, "cpu:0 has no cores of its own: only CPU devices beside cpu:0 do"),
        (("--targets", f"openvino -device=cpu:1 -cores={CORE}"), 5, "openvino has no device cpu:1 here: it has cpu:0"),
        (("--targets", f"native -device=cpu:1 -cores={CORE}", "--devices", "cpu:1@1022"), 2, f"cpu:1 is declared with the cores 1022, not {CORE}"),
    ):
        said = bench.refused(name, *flags, status=status)
        assert expected in said, (flags, said)


CHECKS = (check_pinned, check_placed, check_declared, check_artifact, check_errors)

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as shared:
        sys.exit(checks.run(CHECKS, sys.argv[1:], lambda folder: Bench(folder, os.path.join(shared, "cache"))))
