"""Programs on devices: a simulated accelerator (tests/simulated) whose memory the host cannot touch and live, as a plugin.

    python tests/cli/cli_devices_test.py

Takes the build that COLLAGE_BIN lies in. Prints "N passed, 0 failed" or what went wrong.
"""

import json
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]

import checks
import command
import tiny_models
import workbench

PLUGIN = os.path.join(os.path.dirname(command.COLLAGE), "tests", "libcollage_simulated.so")
PLACED = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 64), float32]) {{
  tanh(on_device(exp(%x), device="{device}"))
}}
"""
# Everything that a module can state besides where an operand is computed.
USED = """#[version = "0.0.5"]
def @f(%x: Tensor[(4, 64), float32], param_devices="simulated:1", result_devices="?") -> Tensor[(4, 64), float32] {
  sqrt(%x)
}
def @main(%x: Tensor[(4, 64), float32], param_devices="cpu:0", result_devices="simulated:0") {
  %0 = exp(%x);
  %1 = on_device(%0, device="simulated:0", constrain_body=False, constrain_result=True);
  %2 = nn.relu(%1);
  %3 = device_copy(%2, from="simulated:0", to="cpu:0");
  %4 = tanh(%3);
  sigmoid(@f(%4))
}
"""
SCOPED = """#[version = "0.0.5"]
program @half {
  param a: float32[4, 64];
  result b[i:4, j:64] in "scratch" = a[i, j] * 0.5f;
}
def @main(%x: Tensor[(4, 64), float32]) { nn.relu(@half(%x)) }
"""
CONTROL = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 64), float32], %go: bool) {
  %0 = fn (%y: Tensor[(4, 64), float32]) -> Tensor[(4, 64), float32] { on_device(exp(%y), device="simulated") };
  %1 = fn (%y: Tensor[(4, 64), float32]) -> Tensor[(4, 64), float32] { tanh(%y) };
  on_device(nn.relu(control.if(%go, %0, %1, %x)), device="simulated")
}
"""
AT_CALLER = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 64), float32], %y: Tensor[(4, 64), float32]) {
  %0 = on_device(%x, device="simulated:0");
  on_device(tanh(add(exp(%0), %y)), device="simulated:0", constrain_body=False, constrain_result=True)
}
"""
FIRST, SECOND = "simulated -device=simulated", "simulated -device=simulated:1"


class Bench(workbench.Bench):
    def simulated(self, subcommand, name, targets, *flags, status=0, **environment):
        return self.report(subcommand, name, "--plugin", PLUGIN, "--targets", targets, "--effort", "fast", *flags, status=status,
                           **environment)

    def refused(self, name, targets, *flags, status, **environment):
        result = command.run(["run", name, "--plugin", PLUGIN, "--targets", targets, *flags], self.folder,
                             cache=self.cache, **environment)
        assert result.returncode == status, result
        assert result.stderr.count("\n") == 1, result.stderr
        return result.stderr


def places(report):
    """Target by operator, and the devices that tensors of kernels lie on."""
    targets = {op["op"]: kernel["target"] for kernel in report["kernels"] for op in kernel["ops"]}
    devices = {tensor.get("device") for kernel in report["kernels"] for tensor in kernel["inputs"] + kernel["outputs"]}
    return targets, devices


def transfers(report):
    return [(c["from"], c["to"]) for c in report["conversions"] if ("@" in c["from"]) != ("@" in c["to"])]


def check_whole(bench):
    """Nothing but inputs and results pass between host and device; `verify` compares every kernel with the reference."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, printed = bench.simulated("verify", name, "simulated")
    targets, devices = places(report)
    assert set(targets.values()) == {FIRST} and None not in devices, (targets, devices)
    assert len(transfers(report)) == 2, report["conversions"]
    assert report["peak_memory"]["planned"] == 0 and report["peak_memory"]["devices"]["simulated:0"] > 0, report["peak_memory"]
    explained = bench.run("explain", name, "--plugin", PLUGIN, "--targets", "simulated", "--effort", "fast", "simulated_nn_softmax")
    assert " on simulated:0" in explained, explained


def check_split(bench):
    """Pinned to a device, named by the target or by the device."""
    name = bench.save("net.onnx", tiny_models.small_net())
    for pin in ("soft.*=simulated", "soft.*=simulated:0", f"soft.*={FIRST}"):
        report, _ = bench.simulated("run", name, "simulated,native", "--pin", pin)
        targets, devices = places(report)
        assert targets["nn.softmax"] == FIRST and targets["nn.conv2d"] == "native", targets
        assert None in devices and len(transfers(report)) == 2, (devices, report["conversions"])


def check_two_devices(bench):
    """Kernels and costs of two devices of one kind never mix."""
    name = bench.save("net.onnx", tiny_models.small_net())
    both = f"{FIRST},{SECOND}"
    report, _ = bench.simulated("run", name, both, "--pin", "soft.*=simulated:1", "--pin", "conv.*=simulated:0")
    targets, _ = places(report)
    assert targets["nn.softmax"] == SECOND and targets["nn.conv2d"] == FIRST, targets
    for kernel in report["kernels"]:
        on = {tensor["device"].split("/")[0] for tensor in kernel["inputs"] + kernel["outputs"]}
        assert on == {"simulated:1" if kernel["target"] == SECOND else "simulated:0"}, kernel
    report, _ = bench.simulated("run", name, both, "--exclude", "simulated:0")
    assert {kernel["target"] for kernel in report["kernels"]} == {SECOND}, report["kernels"]


def check_arithmetic(bench):
    """Of two devices the one that computes a thousand times as fast."""
    name = bench.save("net.onnx", tiny_models.small_net())
    for slow, fast in ((0, SECOND), (1, FIRST)):
        bench.cache = bench.path(f"slow {slow}")
        report, _ = bench.simulated("run", name, f"{FIRST},{SECOND}", **{f"SIMULATED_FLOPS{slow}": "1e6"})
        assert {kernel["target"] for kernel in report["kernels"] if kernel["ops"][0]["op"] == "nn.conv2d"} == {fast}, report["kernels"]


def check_placed(bench):
    """on_device in the text holds for the search."""
    tiny_models.write(bench.folder, "placed.relay", PLACED.format(device="simulated"))
    report, _ = bench.simulated("run", "placed.relay", "simulated,native")
    targets, _ = places(report)
    assert targets["exp"] == FIRST, targets
    assert "where none of the targets is: native, reference" in bench.refused("placed.relay", "native", status=5)


def check_scope(bench):
    """A memory scope too: the search takes the variant that leaves the result there."""
    for scope, memory in (("scratch", "simulated:0/scratch"), ("global", "simulated:0")):
        tiny_models.write(bench.folder, "scoped.relay", PLACED.format(device=f"simulated:0/{scope}"))
        for targets in ("simulated", "simulated,native"):
            report, _ = bench.simulated("run", "scoped.relay", targets)
            made = {op["op"]: kernel["outputs"][0].get("device") for kernel in report["kernels"] for op in kernel["ops"]}
            assert made["exp"] == memory, made
    said = bench.refused("scoped.relay", "native", status=5)
    assert "where none of the targets is: native, reference" in said, said


def check_declared(bench):
    """--devices names the devices to use."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, _ = bench.report("run", name, "--plugin", PLUGIN, "--devices", "simulated:1", "--effort", "fast")
    assert report["targets"] == [SECOND, "reference"], report["targets"]
    assert {kernel["target"] for kernel in report["kernels"]} == {SECOND}, report["kernels"]


def check_named(bench):
    """A device may be called by the name that it was declared with, wherever a device is named."""
    name = bench.save("net.onnx", tiny_models.small_net())
    tiny_models.write(bench.folder, "named.relay", PLACED.format(device="big"))
    named = ("--plugin", PLUGIN, "--devices", "cpu:0,big=simulated:1", "--effort", "fast")
    for pin in ("soft.*=big", "soft.*=simulated -device=big"):
        report, _ = bench.report("run", name, *named, "--targets", "native,simulated -device=big", "--pin", pin)
        targets, _ = places(report)
        assert targets["nn.softmax"] == SECOND and targets["nn.conv2d"] == "native", targets
    report, _ = bench.report("run", name, *named, "--targets", "native,simulated -device=big", "--exclude", "big")
    assert {kernel["target"] for kernel in report["kernels"]} == {"native"}, report["kernels"]
    report, _ = bench.report("run", "named.relay", *named, "--targets", "native,simulated -device=big")
    assert places(report)[0]["exp"] == SECOND, report["kernels"]
    said = bench.refused(name, "simulated -device=big", "--devices", "big=simulated:1", "--memory", "big=100", status=5)
    assert re.search("--memory big=100: it keeps [0-9]+ bytes on simulated:1", said), said
    said = bench.refused(name, "simulated", "--pin", "soft.*=small", status=2)
    assert "--pin soft.*=small: unknown backend 'small'" in said, said


def check_errors(bench):
    name = bench.save("net.onnx", tiny_models.small_net())
    said = bench.refused(name, "simulated -device=simulated:7", status=5)
    assert "simulated has no device simulated:7 here: it has simulated:0, simulated:1" in said, said
    said = bench.refused(name, "native -device=simulated", status=5)
    assert "native has no device simulated:0 here: it has cpu:0" in said, said
    said = bench.refused(name, "simulated", "--pin", "soft.*=simulated:1", status=2)
    assert "simulated:1 is not among the targets in use" in said, said
    said = bench.refused(name, "simulated", "--memory", "simulated:0=100", status=5)
    assert re.search("--memory simulated:0=100: it keeps [0-9]+ bytes on simulated:0", said), said
    said = bench.refused(name, "simulated", "--memory", "simulated:0=much", status=2)
    assert "--memory simulated:0=much: 'much' is no number of bytes" in said, said
    listed = bench.run("targets", "--plugin", PLUGIN)
    assert "device simulated:0" in listed and "device simulated:1" in listed, listed


def check_used(bench):
    """What reads a result that is placed, a copy or a parameter of a function is there."""
    tiny_models.write(bench.folder, "used.relay", USED)
    report, _ = bench.simulated("run", "used.relay", f"{FIRST},{SECOND},native")
    targets, _ = places(report)
    assert targets == {"exp": "native", "nn.relu": FIRST, "tanh": "native", "sqrt": SECOND, "sigmoid": FIRST}, targets
    planned = bench.run("partition", "used.relay", "--devices", "cpu:0,simulated:0,simulated:1")
    tiny_models.write(bench.folder, "planned.relay", '#[version = "0.0.5"]\n' + planned.split("\n", 1)[1])
    report, _ = bench.simulated("run", "planned.relay", f"{FIRST},{SECOND},native")
    assert places(report)[0] == targets, places(report)


def check_at_caller(bench):
    """Input and result that the caller has on the device take no transfer there, by the search; the other input does. Programs are timed so."""
    tiny_models.write(bench.folder, "at_caller.relay", AT_CALLER)
    report, _ = bench.simulated("verify", "at_caller.relay", "simulated,native", "--pin", ".*=simulated:0")
    launch = 0.0005
    predicted = {(c["node"], c["from"]): c["predicted_ms"] for c in report["conversions"]}
    assert predicted.pop((0, "float32")) == launch and predicted.pop((5, "float32@simulated:0")) == launch, report["conversions"]
    assert len(predicted) == 1 and min(predicted.values()) > launch, report["conversions"]


def check_control(bench):
    """Conditions are the host's: it runs control flow, whose functions compute on a device; what is planned runs too."""
    tiny_models.write(bench.folder, "control.relay", CONTROL)
    planned = bench.run("partition", "control.relay", "--devices", "cpu:0,simulated:0")
    assert planned.count('from="cpu:0", to="simulated:0"') == 2 and planned.count('from="simulated:0", to="cpu:0"') == 2, planned
    tiny_models.write(bench.folder, "planned.relay", '#[version = "0.0.5"]\n' + planned.split("\n", 1)[1])
    for name in ("control.relay", "planned.relay"):
        report, _ = bench.simulated("verify", name, "simulated,native")
        targets, _ = places(report)
        assert targets["control.if"] == "reference" and targets["nn.relu"] == FIRST, targets
    # It is the host's wherever its result and what it is handed are stated to be.
    handed = 'on_device(%x, device="simulated/scratch", constrain_body=False, constrain_result=True)'
    tiny_models.write(bench.folder, "scoped.relay", CONTROL.replace("nn.relu(control.if(%go, %0, %1, %x))", f"control.if(%go, %0, %1, {handed})")
                      .replace('device="simulated")\n}', 'device="simulated/scratch")\n}'))
    report, _ = bench.simulated("run", "scoped.relay", "simulated,native")
    assert places(report)[0] == {"control.if": "reference"}, places(report)


def check_scope_of_program(bench):
    """A buffer of a tensor program that is to be elsewhere than in ordinary memory: no target here can do that."""
    tiny_models.write(bench.folder, "half.relay", SCOPED)
    said = bench.refused("half.relay", "native", status=4)
    assert "with the memory scopes that are stated: no kernel for tensor_program" in said, said


def check_memory(bench):
    """Where the device has no room the program runs elsewhere: whether the user says so, or the device does."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, _ = bench.simulated("run", name, "simulated,native", "--memory", "simulated:0=0")
    assert {kernel["target"] for kernel in report["kernels"]} == {"native"}, report["kernels"]


CHECKS = (check_whole, check_split, check_two_devices, check_arithmetic, check_placed, check_scope, check_used, check_at_caller, check_control,
          check_scope_of_program, check_memory, check_declared, check_named, check_errors)

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as shared:
        sys.exit(checks.run(CHECKS, sys.argv[1:], lambda folder: Bench(folder, os.path.join(shared, "cache"))))
