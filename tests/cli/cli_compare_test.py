"""bench --compare: other runtimes on the same shapes and inputs, how far outputs differ, and what the turns decide.

    python tests/cli/cli_compare_test.py [CHECK...]

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import os
import re
import shutil
import sys
import tempfile

import numpy as np
from onnx import helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "conformance")]

import checks
import command
import tiny_models
import whole_models
from workbench import Bench


def check_comparison_decides(bench):
    """Ten turns give an interval, and who is faster where it lies on one side of 1."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, printed = bench.report("bench", name, "--duration", "0.1", "--compare", "onnxruntime")
    found = report["peers"]["onnxruntime"]["speed_up"]
    assert found["turns"] == 10 and 0 < found["low"] <= found["median"] <= found["high"], found
    side = "faster" if found["low"] > 1 else "slower" if found["high"] < 1 else None
    assert found["verdict"] == side if side else found["verdict"] in ("alike", "moved"), found
    (line,) = re.findall("^over onnxruntime .*", printed, re.MULTILINE)
    assert ("not decided" in line) == (found["verdict"] == "moved"), printed


def check_partition_of_the_user(bench):
    """A module that states kernels, and an artifact, take turns with the program: the apparent loss is printed, and other models are refused."""
    name = bench.save("net.onnx", tiny_models.small_net())
    flags = ("--duration", "0.1", "--effort", "fast")
    bench.run("compile", name, "--targets", "native", "--emit", "module", "-o", "mine.relay")
    bench.run("compile", name, "--targets", "onednn", "-o", "mine.collage")
    report, printed = bench.report("bench", name, *flags, "--compare", "mine.relay,mine.collage")
    assert "peers" not in report and [one["name"] for one in report["partitions"]] == ["mine.relay", "mine.collage"], report.get("partitions")
    for one in report["partitions"]:
        ratio = one["speed_up"]["median"]
        assert one["speed_up"]["turns"] == 10, one
        assert abs(one["apparent_loss"] - max(0, 1 / ratio - 1)) < 1e-9, one
        (loss,) = re.findall(rf"^over {one['name']} .*; apparent loss (.*)%$", printed, re.MULTILINE)
        assert abs(float(loss) - 100 * one["apparent_loss"]) <= 0.051, printed
    other = bench.save("batch.onnx", tiny_models.small_net(batch="n"))
    for arguments, reason in (((other, "--dim", "n=5", "--compare", "mine.collage"), "its inputs are not those of"),
                              ((name, "--streams", "1", "--compare", "mine.relay"), "single inferences")):
        refused = command.run(["bench", *arguments, *flags], bench.folder, cache=bench.cache)
        assert refused.returncode == 2 and reason in refused.stderr, refused


def check_comparison_of_shapes(bench):
    """Dynamic dimensions have the sizes for the other runtimes that they have here, inputs are those given, outputs agree."""
    batch = tiny_models.small_net(batch="n")
    name = bench.save("batch.onnx", batch)
    np.save(bench.path("image.npy"), np.linspace(-1, 1, 5 * 3 * 12 * 12, dtype=np.float32).reshape(5, 3, 12, 12))
    for flags in (["--dim", "n=5", "--inputs", "image=image.npy"], ["--shapes", "image=2x3x12x12"]):
        report, _ = bench.report("bench", name, "--duration", "0.1", "--compare", "onnxruntime,openvino", *flags)
        for peer in report["peers"].values():
            assert peer["difference"]["within"] and peer["difference"]["max_rel"] < 1e-4, (flags, peer)


def check_comparison_of_constants(bench):
    """Inputs that --constant made part of the program are given to the other runtimes, at the place that they have in the file."""
    model = tiny_models.reshape_model()
    assert [value.name for value in model.graph.input] == ["x", "shape"], model.graph.input
    model.graph.input.reverse()
    name = bench.save("reshape.onnx", model)
    np.save(bench.path("shape.npy"), np.int64([3, 2]))
    report, _ = bench.report("bench", name, "--duration", "0.1", "--compare", "onnxruntime", "--constant", "shape=shape.npy")
    assert report["peers"]["onnxruntime"]["difference"]["max_abs"] == 0, report["peers"]


def check_models_in_stages(bench):
    """Whole runs of a model whose shapes depend on values are timed beside another runtime, and what wants one plan is refused."""
    bench.save("places.onnx", tiny_models.places_model())
    np.save(bench.path("x.npy"), np.float32([[0, 1, 2], [3, 0, 0]]))
    flags = ["places.onnx", "--inputs", "x=x.npy"]
    printed = bench.run("bench", *flags, "--duration", "0.1", "--compare", "onnxruntime")
    assert "runs in stages" in printed and "over onnxruntime " in printed and "outputs differ by 0 at most" in printed, printed
    for given in (["--layers"], ["--streams", "2"]):
        bench.run("bench", *flags, *given, status=2)


def check_loops_and_selections(bench):
    """Models are timed whose loop ends by what it computed, and in which values decide how many there are."""
    wanted = {"a computed end": "Loop", "NonMaxSuppression": "NonMaxSuppression", "Unique": "Unique"}
    for name, model, feed in (*whole_models.loops(), *whole_models.values_decide()):
        if name not in wanted:
            continue
        assert wanted.pop(name) in {node.op_type for node in model.graph.node}, name
        flags = []
        for i, (value, array) in enumerate(feed.items()):
            np.save(bench.path(f"{i}.npy"), array)
            flags += ["--inputs", f"{value}={i}.npy"]
        printed = bench.run("bench", bench.save("model.onnx", model), *flags, "--duration", "0.1", "--compare", "onnxruntime")
        assert ("runs in stages" in printed) == (name != "a computed end"), printed  # a loop is a part of the graph
        assert "over onnxruntime " in printed and "outputs differ by 0 at most" in printed, printed
    assert not wanted, wanted


def python_with_wrong_peers(bench, outputs):
    """A Python whose ONNX Runtime gives other `outputs`."""
    wrong = bench.path("wrong_peers")
    shutil.copytree(os.path.join(command.ROOT, "bench", "peers"), wrong)
    with open(os.path.join(wrong, "onnxruntime_peer.py"), "a") as file:
        file.write(f"\n    def outputs(self):\n        return [(v.name, {outputs}) for v, o in zip(self._session.get_outputs(), self._outputs)]\n")
    with open(bench.path("python"), "w") as file:
        file.write(f'#!/bin/sh\nshift\nexec "{sys.executable}" "{wrong}/peer.py" "$@"\n')
    os.chmod(bench.path("python"), 0o755)
    return bench.path("python")


def check_verify_against_another_runtime(bench):
    """The other runtime has the model's file, inputs that --constant made part of the program, and shapes that only a run decides."""
    np.save(bench.path("shape.npy"), np.int64([3, 2]))
    np.save(bench.path("x.npy"), np.float32([[0, 1, 2], [3, 0, 0]]))
    bench.save("reshape.onnx", tiny_models.reshape_model())
    bench.save("places.onnx", tiny_models.places_model())
    for flags in (["reshape.onnx", "--constant", "shape=shape.npy"], ["places.onnx", "--inputs", "x=x.npy"]):
        assert "verified against onnxruntime" in bench.run("verify", *flags, "--compare", "onnxruntime"), flags
    wrong = python_with_wrong_peers(bench, "o.numpy() + 1")
    for flags in (["reshape.onnx", "--constant", "shape=shape.npy"], ["places.onnx", "--inputs", "x=x.npy"]):
        bench.run("verify", *flags, "--compare", "onnxruntime", status=6, COLLAGE_PYTHON=wrong)


def check_comparison_tells_wrong_outputs(bench):
    """A runtime whose outputs are others is told apart from one that rounds otherwise."""
    name = bench.save("net.onnx", tiny_models.small_net())
    wrong = python_with_wrong_peers(bench, "1.01 * o.numpy()")
    report, printed = bench.report("bench", name, "--duration", "0.1", "--compare", "onnxruntime", status=1, COLLAGE_PYTHON=wrong)
    found = report["peers"]["onnxruntime"]["difference"]
    assert not found["within"] and "element" in found["reason"], found
    assert 0.009 < found["max_rel"] < 0.011 and ", which is too much: output 0 element" in printed, (found, printed)
    assert "over onnxruntime no ratio; " in printed and "speed-up over" not in printed, printed
    assert not any(key.startswith("speed_up") for key in report["peers"]["onnxruntime"]), report["peers"]
    printed = bench.run("bench", name, "--compare", "onnxruntime", "--streams", "1", "--duration", "0.1", status=1, COLLAGE_PYTHON=wrong)
    assert not re.search(r"over onnxruntime \d", printed), printed


def check_what_roundings_move_is_no_difference(bench):
    """(100000 x + x) - 100000 x is x but for some hundredths of it, which an honest runtime may round otherwise."""
    nodes = [helper.make_node("Mul", ["x", "many"], ["a"]), helper.make_node("Add", ["a", "x"], ["b"]), helper.make_node("Sub", ["b", "a"], ["y"])]
    made = tiny_models.model(nodes, {"x": [8, 64]}, {"y": [8, 64]}, {"many": np.float32([100000])})
    for factor, status in ((1.003, 0), (2, 1)):
        other = python_with_wrong_peers(bench, f"np.float32({factor}) * o.numpy()")
        printed = bench.run("bench", bench.save("cancels.onnx", made), "--duration", "0.1", "--compare", "onnxruntime", status=status,
                            COLLAGE_PYTHON=other)
        assert ("over onnxruntime no ratio; " in printed) == bool(status), printed
        shutil.rmtree(bench.path("wrong_peers"))


def check_single_backend_runs_again(bench):
    """The backend that is fastest alone takes part in the turns: its figure is not the luckiest one of compiling, and none is printed without them."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, printed = bench.report("bench", name, "--duration", "0.1", "--compare", "onnxruntime")
    found = report["best_single_backend"]
    assert found["name"] in report["single_backend_ms"] and found["count"] == report["latency_ms"]["count"], found
    assert found["speed_up"]["turns"] == 10 and found["speed_up"]["low"] <= found["speed_up"]["median"], found
    assert f"over {found['name']} alone {found['speed_up']['median']:.2f}x" in printed, printed
    assert re.search(rf" · best single backend: {found['name']} \d+\.\d+ ms · {found['speed_up']['median']:.2f}x\n", printed), printed
    report, printed = bench.report("bench", name, "--duration", "0.1", "--effort", "fast")
    assert "best_single_backend" not in report and re.search(r" · best single backend: \w+ \d+\.\d+ ms while compiling\n", printed), printed


CHECKS = (check_models_in_stages, check_loops_and_selections, check_verify_against_another_runtime, check_single_backend_runs_again, check_comparison_decides, check_comparison_of_shapes, check_comparison_of_constants, check_comparison_tells_wrong_outputs,
          check_what_roundings_move_is_no_difference, check_partition_of_the_user)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as shared:
        sys.exit(checks.run(CHECKS, sys.argv[1:], lambda folder: Bench(folder, os.path.join(shared, "cache"))))
