"""collage inspect: what the file says, what each backend claims, and every node that one does not take, with nothing measured.

    python tests/cli/cli_inspect_test.py [CHECK...]

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import json
import os
import re
import sys

import onnx
from onnx import helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import command
import schema
import tiny_models

with open(os.path.join(HERE, "..", "..", "docs", "inspect-schema.json")) as file:
    SCHEMA = json.load(file)


def inspect(folder, model, *arguments, status=0):
    """What it printed, the JSON that it wrote (checked against the schema), and what it said on stderr."""
    onnx.save(model, os.path.join(folder, "net.onnx"))
    written, cache = os.path.join(folder, "net.json"), os.path.join(folder, "cache")
    result = command.run(["inspect", "net.onnx", "--json", written, *arguments], folder, cache=cache)
    assert result.returncode == status, f"exit status {result.returncode}: {result.stderr or result.stdout}"
    with open(written) as file:
        found = json.load(file)
    assert not (wrong := schema.problems(found, SCHEMA)), "\n".join(wrong[:10])
    assert not os.path.exists(os.path.join(cache, "costs.db")), "something was measured"
    return result.stdout, found, result.stderr


def scan_net():
    """A product, and a cumulative sum over many elements, which only the reference computes."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"], "product"), helper.make_node("CumSum", ["a", "axis"], ["y"], "sums")]
    made = tiny_models.model(nodes, {"x": [64, 8]}, {"y": [64, 32]}, {"w": tiny_models.weights(8, 32)})
    made.graph.initializer.append(helper.make_tensor("axis", onnx.TensorProto.INT64, [], [1]))
    return made


def check_supported(folder):
    """Inputs, outputs, operators of file and graph; a backend claims all, so that nothing has to run on the reference."""
    printed, found, said = inspect(folder, tiny_models.small_net())
    assert not said and found["supported"] and found["assumed"] == [], (said, found)
    assert found["file"]["opset"] == 17 and found["file"]["operators"]["Conv"] == 1, found
    assert found["file"]["inputs"] == [{"name": "image", "dtype": "float32", "dims": ["1", "3", "12", "12"]}], found
    assert found["inputs"][0]["shape"] == [1, 3, 12, 12] and found["outputs"][0]["name"] == "scores", found
    assert found["operators"]["nn.conv2d"]["nodes"] == 1 and found["operators"]["nn.conv2d"]["flops"] > 0, found
    assert sum(o["nodes"] for o in found["operators"].values()) == found["nodes"], found
    assert found["reference"] == {"operators": {}, "share": 0}, found
    assert "opset 17" in printed and "nothing has to run on reference" in printed, printed
    for backend in found["backends"]:
        missing = [row["node"] for row in found["unsupported"] if row["backend"] == backend["target"]]
        assert len(missing) == found["nodes"] - backend["nodes"], (backend, missing)


def check_reference_share(folder):
    """A node that nobody claims is named with each backend's reason, and counted by its part of the arithmetic."""
    printed, found, _ = inspect(folder, scan_net(), "--exclude", "native,openvino")
    rows = [row for row in found["unsupported"] if row["node"] == "sums"]
    assert {row["backend"] for row in rows} == {b["target"] for b in found["backends"]}, (rows, found["backends"])
    assert all(row["reason"] for row in found["unsupported"]), found["unsupported"]
    assert list(found["reference"]["operators"]) == [rows[0]["op"]] and 0 < found["reference"]["share"] < 1, found["reference"]
    assert re.search(rf"^on reference, which is slow: {rows[0]['op']} 1: [\d.]+% of the arithmetic$", printed, re.MULTILINE), printed


def check_constraints_are_reasons(folder):
    """What the user forbids is told as such."""
    _, found, _ = inspect(folder, tiny_models.small_net(), "--exclude", "onednn:nn.conv2d")
    reasons = [row["reason"] for row in found["unsupported"] if row["op"] == "nn.conv2d" and row["backend"] == "onednn"]
    assert reasons == ["--exclude or --pin keeps it away"], reasons


def check_open_dimensions(folder):
    """Open dimensions are taken as 1, and the flags that give others are told; given ones are used."""
    batch = tiny_models.small_net(batch="n")
    printed, found, _ = inspect(folder, batch)
    assert found["assumed"] == ["--dim n=1"] and found["inputs"][0]["shape"][0] == 1, found
    assert found["file"]["inputs"][0]["dims"][0] == "n" and "taken as --dim n=1" in printed, printed
    _, found, _ = inspect(folder, batch, "--dim", "n=5")
    assert found["assumed"] == [] and found["inputs"][0]["shape"][0] == 5, found


def check_unsupported(folder):
    """All that cannot be imported is listed, however much it is, with one line on stderr and status 4."""
    count = 20
    nodes = [helper.make_node("Frobnicate", [f"x{i}"], [f"x{i + 1}"], f"node{i}") for i in range(count)]
    model = tiny_models.model(nodes, {"x0": [1, 4]}, {f"x{count}": [1, 4]})
    printed, found, said = inspect(folder, model, status=4)
    assert said.count("\n") == 1 and "20 nodes are unsupported" in said, said
    assert not found["supported"] and "backends" not in found, found
    assert found["unsupported"] == [{"node": f"node{i}", "op": "Frobnicate", "backend": "import", "reason": "unknown operator"}
                                    for i in range(count)], found["unsupported"]
    assert all(f"node{i} (Frobnicate)" in printed for i in range(count)) and "as Collage sees it" not in printed, printed


def check_stages(folder):
    """A model that runs in stages is one that can be run: what the host computes between them is listed."""
    printed, found, said = inspect(folder, tiny_models.places_model())
    assert not said and "It runs in stages" in printed, (printed, said)
    assert [(entry["op"], entry["backend"]) for entry in found["unsupported"]][0] == ("NonZero", "import"), found["unsupported"]


def check_plan_warns(folder):
    """A plan that leaves much to the reference says so in one line and in its report, and one that was asked for it does not."""
    onnx.save(scan_net(), os.path.join(folder, "net.onnx"))
    run = lambda *flags: command.run(["run", "net.onnx", "--json", "run.json", *flags], folder,
                                     cache=os.path.join(folder, "cache"))
    result = run("--targets", "onednn")
    with open(os.path.join(folder, "run.json")) as file:
        on_host = json.load(file)["on_host"]
    assert result.returncode == 0 and result.stderr.count("\n") == 1, result
    assert re.search(r"[\d.]+% of the arithmetic runs on reference, which is slow.*: \w+ \(collage inspect says why\)", result.stderr), result.stderr
    assert on_host["target"] == "reference" and on_host["share"] > 0.01, on_host
    assert run("--targets", "reference").stderr == ""


CHECKS = (check_supported, check_reference_share, check_constraints_are_reasons, check_open_dimensions, check_unsupported,
          check_stages, check_plan_warns)


if __name__ == "__main__":
    sys.exit(checks.run(CHECKS, sys.argv[1:]))
