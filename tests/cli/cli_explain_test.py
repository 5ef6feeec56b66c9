"""explain: its numbers add up to the prediction and are those that a rerun with the flag gives; golden text on mock costs.

    python tests/cli/cli_explain_test.py [--update]

golden/explain.txt holds commands with what they print, on the Relay text and mock costs below. --update writes what the
command says now, for review. Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import json
import os
import re
import shlex
import sys
import tempfile

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]

import checks
import command
import schema
import tiny_models

GOLDEN = os.path.join(HERE, "golden", "explain.txt")
with open(os.path.join(HERE, "..", "..", "docs", "report-schema.json")) as file:
    REPORT_SCHEMA = json.load(file)

# A convolution with its activation, a branch, and a softmax; three targets that like different parts of it.
NET = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8, 6, 6), float32], %w: Tensor[(8, 8, 3, 3), float32]) -> Tensor[(1, 8, 6, 6), float32] {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1]);
  %1 = nn.relu(%0);
  %2 = exp(%1);
  %3 = add(%1, %2);
  nn.softmax(%3)
}
"""
MOCK = {
    "targets": [
        {"name": "conv", "compiler": "conv",
         "rule": "only_valid(combine(union(composite('conv_relu', is_op('nn.relu')(is_op('nn.conv2d')(*, *))), "
                 "composite('conv', is_op('nn.conv2d')(*, *))), joins: any))"},
        {"name": "relus", "compiler": "relus",
         "rule": "combine(composite('relu', is_op('nn.relu')(*)), joins: any)"},
        {"name": "any", "rule": "combine(is_op_up_to('anchor'))"}],
    "mock_costs": {"per_op": {"conv": 3, "relus": 1, "any": 4}, "fusion_benefit": 0.5, "max_estimates": 0}}


def close(a, b):
    return abs(a - b) <= 1e-9 * max(1, abs(a), abs(b))


class Folder:
    def __init__(self, path, shared):
        self.path, self.cache = path, os.path.join(shared, "cache")
        tiny_models.write(path, "net.relay", NET)
        tiny_models.write(path, "mock.json", json.dumps(MOCK))
        onnx.save(tiny_models.small_net(), os.path.join(path, "net.onnx"))

    def run(self, *arguments, status=0):
        result = command.run(arguments, self.path, cache=self.cache)
        assert result.returncode == status, f"exit status {result.returncode}: {result.stderr or result.stdout}"
        return result.stdout if status == 0 else result.stderr

    def report(self, *arguments):
        self.run(*arguments, "--json", "report.json")
        with open(os.path.join(self.path, "report.json")) as file:
            report = json.load(file)
        assert not (wrong := schema.problems(report, REPORT_SCHEMA)), "\n".join(wrong[:10])
        return report


def check_sum(report):
    parts = sum(part["predicted_ms"] for part in report["kernels"] + report["conversions"])
    assert close(parts + report["correction_ms"], report["predicted_ms"]), (parts, report["correction_ms"], report["predicted_ms"])
    assert close(parts, report["isolated_ms"]), (parts, report["isolated_ms"])
    for plan in report["plans"]:
        parts = sum(part["predicted_ms"] for part in plan["kernels"] + plan["conversions"])
        assert close(parts + plan["correction_ms"], plan["predicted_ms"]), (plan["name"], parts, plan["predicted_ms"])


def check_graph(report):
    """Every operator is in exactly one kernel, and what kernels refer to exists."""
    known = {node["index"]: node["op"] for node in report["nodes"]}
    held = [op["index"] for kernel in report["kernels"] for op in kernel["ops"]]
    assert len(held) == len(set(held)) and set(held) <= set(known)
    assert {name["from"] for name in report["edges"]} <= {k["name"] for k in report["kernels"] + report["conversions"]} | {""}


def check_mock(folder):
    """By hand: conv, relu, exp and add as one kernel 4·(1+½+¼+⅛) = 7.5, softmax 4; what each target alone takes."""
    report = folder.report("explain", "net.relay", "--config", "mock.json")
    assert close(report["predicted_ms"], 11.5) and report["correction_ms"] == 0, report["predicted_ms"]
    check_sum(report)
    check_graph(report)
    assert [w["flag"] for w in report["what_if"]] == [f for t in ("conv", "relus", "any") for f in (f"--exclude '{t}'", f"--pin '.*={t}'")]


def check_reruns(folder, report, model, *config):
    """A rerun with a flag predicts what `report` says of it; how many were compared."""
    compared = 0
    for entry in report["what_if"]:
        if "failure" in entry:
            continue
        rerun = folder.report("explain", model, *config, *shlex.split(entry["flag"]))
        assert close(rerun["covers"][0]["predicted_ms"], entry["predicted_ms"]), (entry, rerun["covers"])
        compared += 1
    return compared


def check_what_if(folder):
    """The number that explain gives for a flag is the one that a rerun with it predicts."""
    for model, config in (("net.relay", ("--config", "mock.json")), ("net.onnx", ())):
        folder.run(*(("run", model) if not config else ("partition", model, *config)))

        def compare():
            report = folder.report("explain", model, *config)
            check_sum(report)
            assert check_reruns(folder, report, model, *config) >= 3, report["what_if"]

        checks.once_settled(compare)


def check_kernel(folder):
    """One kernel with all its alternatives and what pinning it elsewhere costs, by any of its names."""
    folder.run("run", "net.onnx")

    def compare():
        report = folder.report("explain", "net.onnx", "conv")
        kernel = next(k for k in report["kernels"] if any(op["onnx_node"] == "conv" for op in k["ops"]))
        by_node, by_name = folder.run("explain", "net.onnx", "conv"), folder.run("explain", "net.onnx", kernel["name"])
        assert by_node == by_name
        for other in kernel["alternatives"]:
            assert other["target"] in by_name, (other, by_name)
        assert report["what_if"], "nothing was asked"
        check_reruns(folder, report, "net.onnx")

    checks.once_settled(compare)
    assert "no kernel is called 'nothing'" in folder.run("explain", "net.onnx", "nothing", status=2)


def check_why_not(folder):
    """Every target gives an answer: it runs there, it would cost so much, it was refused, or no rule takes it."""
    report = folder.report("explain", "net.onnx", "softmax", "reference")
    kernel = next(k for k in report["kernels"] if any(op["onnx_node"] == "softmax" for op in k["ops"]))
    for target in report["targets"]:
        said = folder.run("explain", "net.onnx", "softmax", target)
        if target == kernel["target"]:
            assert "does run on" in said, said
        elif target in ("amx", "memory", "recurrent"):
            assert f"no rule of {target}" in said, said
        else:
            assert re.search("could run|refused|no rule of", said), said
            assert "--pin '^(softmax)$=" in said, said
    assert "not among the targets" in folder.run("explain", "net.onnx", "softmax", "gpu", status=2)


def check_report_file(folder):
    """A report says what the model said, but for what only a model can be asked."""
    folder.run("run", "net.onnx", "--json", "saved.json")
    said = folder.run("explain", "saved.json", "dense")
    assert said.splitlines()[0] == folder.run("explain", "net.onnx", "dense").splitlines()[0]


def golden_text(folder, commands):
    return "".join(f"$ {line}\n{folder.run(*shlex.split(line))}\n" for line in commands)


def check_golden(folder):
    with open(GOLDEN) as file:
        text = file.read()
    assert text.count("$ ") >= 4, "the golden file is not whole"
    now = golden_text(folder, re.findall(r"^\$ (.*)$", text, re.MULTILINE))
    assert now == text, f"golden/explain.txt differs (--update writes it):\n{now}"


CHECKS = (check_mock, check_what_if, check_kernel, check_why_not, check_report_file, check_golden)


def update():
    with tempfile.TemporaryDirectory() as path:
        with open(GOLDEN) as file:
            commands = re.findall(r"^\$ (.*)$", file.read(), re.MULTILINE)
        text = golden_text(Folder(path, path), commands)
        with open(GOLDEN, "w") as file:
            file.write(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        with tempfile.TemporaryDirectory() as shared:
            sys.exit(checks.run(CHECKS, sys.argv[1:], lambda path: Folder(path, shared)))
