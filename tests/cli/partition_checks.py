"""Checks of which toolchain computes what: partition's text, rules and targets of the user's own, constraints, and what a single
toolchain leaves out. Checks of cli_run_test.py, which share its cache.
"""

import os
import re

import numpy as np

import tiny_models
from workbench import close


def check_partition(bench):
    """Text in which each kernel states its target and its variant."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, printed = bench.report("partition", name)
    assert printed.startswith('#[version = "0.0.5"]') and "def @main" in printed, printed
    targets = [k["target"] for k in report["kernels"]]
    assert sorted(re.findall(r'Target="([^"]+)"', printed)) == sorted(targets), printed
    assert printed.count("global_symbol=") == printed.count("Variant=") == printed.count("Primitive=1") == len(targets), printed
    assert printed.count("def @") == 1 and "conversions=" in printed, printed
    assert "latency_ms" not in report


def check_config(bench):
    """Rules and mock costs of the user's own: nothing is compiled, constants need no values, --json lists kernels."""
    tiny_models.write(bench.folder, "mock.json", tiny_models.MOCK)
    tiny_models.write(bench.folder, "weights.relay", """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4), float32]) {
  %0 = nn.dense(%x, meta[relay.Constant][0] /*Tensor[(8, 4), float32]*/);
  %1 = add(%0, meta[relay.Constant][1] /*Tensor[(8), float32]*/);
  nn.relu(nn.relu(%1))
}
""")
    report, printed = bench.report("partition", "weights.relay", "--config", "mock.json", schema_too=False)
    kernels = [(k["name"], k["target"], [op["op"] for op in k["ops"]]) for k in report["kernels"]]
    assert kernels == [("collage_llvm_nn_dense_add", "llvm", ["nn.dense", "add"]),
                       ("collage_hook_nn_relu_nn_relu", "hook", ["nn.relu", "nn.relu"])], kernels
    assert abs(report["cost"] - (2 * 1.9 + 1.9)) < 1e-9 and report["host"] == [], report
    assert "meta[relay.Constant][0] /*Tensor[(8, 4), float32]*/" in printed and "#[metadata]" not in printed, printed


def check_configured_targets(bench):
    """Rules of the user's own on real backends, for real; incompatible ones do not meet."""
    name = bench.save("net.onnx", tiny_models.small_net())
    tiny_models.write(bench.folder, "own.json", """{"targets": [
        {"name": "onednn", "rule": "combine(is_op('nn.conv2d', 'nn.bias_add', 'nn.relu'), joins: any)"},
        {"name": "native"}], "incompatible": [["onednn", "native"]]}""")
    report, _ = bench.report("run", name, "--config", "own.json", "--effort", "fast")
    targets = {k["target"] for k in report["kernels"]}
    assert targets in ({"onednn", "reference"}, {"native"}, {"native", "reference"}), targets
    assert report["targets"] == ["onednn", "native", "reference"], report["targets"]


def check_light_partition(bench):
    """With one toolchain there is nothing to measure: no cost is looked for, not even with frozen costs and no database."""
    name = bench.save("net.onnx", tiny_models.small_net())
    for target in ("native", "onednn", "openvino"):
        report, printed = bench.report("partition", name, "--targets", target, "--frozen-costs", "--db", "absent.db", schema_too=False)
        assert report["costs"] == "none" and not os.path.exists(bench.path("absent.db")), report
        used = {k["target"] for k in report["kernels"]}
        assert target in used and used <= {target, "reference"}, used
        joined = [k for k in report["kernels"] if len(k["ops"]) > 1]
        assert joined, report["kernels"]
        compilers = re.findall(r'Compiler="(\w+)"', printed)
        assert len(compilers) == (0 if target == "native" else sum(k["target"] == target for k in report["kernels"])), printed
    report, _ = bench.report("partition", name, "--targets", "onednn", "--pin", "soft.*=reference", schema_too=False)
    targets = {op["op"]: k["target"] for k in report["kernels"] for op in k["ops"]}
    assert targets["nn.softmax"] == "reference" and targets["nn.conv2d"] == "onednn", targets


def check_one_toolchain(bench):
    """With one toolchain nothing is measured, kernels are only tried, and once; --effort max measures."""
    name = bench.save("net.onnx", tiny_models.small_net(filters=9))
    np.save(bench.path("image.npy"), np.random.default_rng(8).standard_normal((1, 3, 12, 12)).astype(np.float32))
    flags = ["--inputs", "image=image.npy", "--save-outputs", "outputs", "--db", "one.db"]
    for target in ("native", "onednn", "openvino"):
        report, printed = bench.report("run", name, "--targets", target, *flags)
        assert report["search"]["light"] and report["search"]["covers_timed"] == 0, report["search"]
        assert report["estimates"]["measured"] == 0 < report["estimates"]["tried"], report["estimates"]
        assert "nothing measured beforehand" in printed, printed
        assert any(len(k["ops"]) > 1 for k in report["kernels"]), report["kernels"]
        again, _ = bench.report("run", name, "--targets", target, *flags, "--frozen-costs")
        assert again["estimates"]["tried"] == again["estimates"]["measured"] == 0, again["estimates"]
        assert [k["variant"] for k in again["kernels"]] == [k["variant"] for k in report["kernels"]]
    before = bench.outputs()["0_scores.npy"]
    report, _ = bench.report("run", name, "--targets", "native", "--effort", "max", *flags)
    assert not report["search"]["light"] and report["estimates"]["measured"] > 0 < report["search"]["covers_timed"], report
    close(bench.outputs()["0_scores.npy"], before)
    report, _ = bench.report("run", name, "--targets", "native", *flags)
    assert not report["search"]["light"] and report["estimates"]["measured"] == 0, "what is known decides"


def check_constraints(bench):
    """--exclude keeps a backend, or an operator, away, and the reference from what others take; --pin keeps nodes on a backend;
    --threads is what is used."""
    name = bench.save("net.onnx", tiny_models.small_net())
    for flags in (["--exclude", "onednn:nn.softmax"], ["--pin", "soft.*=reference"]):
        for subcommand in ("partition", "run"):
            report, _ = bench.report(subcommand, name, "--targets", "onednn,reference", *flags, schema_too=subcommand == "run")
            targets = {op["op"]: k["target"] for k in report["kernels"] for op in k["ops"]}
            assert targets["nn.softmax"] == "reference" and targets["nn.conv2d"] == "onednn", targets
    report, _ = bench.report("run", name, "--targets", "onednn,native", "--exclude", "reference")
    offered = {k["target"] for kernel in report["kernels"] for k in [kernel, *kernel["alternatives"]]}
    assert offered <= {"onednn", "native"}, offered
    report, _ = bench.report("run", name, "--targets", "onednn,reference", "--exclude", "onednn", "--threads", "1")
    assert {k["target"] for k in report["kernels"]} == {"reference"}, report["kernels"]
    assert report["env"]["threads"] == 1


def check_targets_of_one_kind(bench):
    """Two targets of one backend that differ in an option are two targets, whichever flag names them."""
    name = bench.save("net.onnx", tiny_models.small_net())
    both = ["native", "native -symbolic=only"]
    flags = ("--targets", ",".join(both + ["reference"]), "--effort", "fast")
    report, _ = bench.report("run", name, *flags)
    assert report["targets"] == both + ["reference"], report["targets"]
    alone = {cover["name"] for cover in report["covers"] if cover["single_backend"]}
    assert set(both) <= alone, alone
    for pinned in both:
        report, _ = bench.report("run", name, *flags, "--pin", f".*={pinned}")
        used = {kernel["target"] for kernel in report["kernels"]}
        assert pinned in used if "=" in pinned else used & set(both), (pinned, used)
        assert "=" not in pinned or used <= {pinned, "reference"}, (pinned, used)
    report, _ = bench.report("run", name, *flags, "--exclude", both[1])
    assert report["targets"] == ["native", "reference"], report["targets"]
    tiny_models.write(bench.folder, "two.json", """{"targets": [
        {"name": "native"}, {"name": "calling", "compiler": "native", "options": {"symbolic": "only"}}]}""")
    report, _ = bench.report("run", name, "--config", "two.json")
    assert report["targets"] == both + ["reference"], report["targets"]


def check_devices(bench):
    """Devices are planned where --devices declares them: by on_device in the text, and by --pin for nodes of a model."""
    tiny_models.write(bench.folder, "placed.relay", """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4), float32]) {
  exp(on_device(nn.relu(%x), device="gpu:1"))
}
""")
    printed = bench.run("partition", "placed.relay", "--devices", "cpu:0,gpu:0,gpu:1")
    assert printed.count("device_copy(") == 1 and 'device_copy(%0, from="gpu:1", to="cpu:0")' in printed, printed
    assert "def @collage_gpu_1_nn_relu(" in printed and "on_device" not in printed, printed
    name = bench.save("net.onnx", tiny_models.small_net())
    printed = bench.run("partition", name, "--devices", "cpu:0,little=cpu:1", "--pin", "soft=little")
    assert "def @collage_cpu_1_" in printed and printed.count('device_copy(') == 1, printed  # what it reads is there too


CHECKS = (check_partition, check_config, check_devices, check_configured_targets,
          check_light_partition, check_one_toolchain, check_constraints, check_targets_of_one_kind)
