"""run, verify, bench, partition and targets do what they say on tiny models.

    python tests/cli/cli_run_test.py [CHECK...]

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import contextlib
import json
import os
import re
import sqlite3
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import helper

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import command
import schema
import tiny_models

MS = r"\d+\.\d+ ms"
SUMMARY = (rf"\S+ ( \w+ \d+ ops? in \d+ kernels? {MS} ·)+ (no conversions|conversions \d+, {MS})\n"
           rf"predicted {MS} \((exact search|search within [\d.e+-]+%)\), isolated costs {MS}(, in situ {MS})?, measured {MS} ± \d+\.\d+ · "
           rf"(no single backend covers this model|best single backend: \w+ {MS} · \d+\.\d\dx)\n")
with open(os.path.join(ROOT, "docs", "report-schema.json")) as file:
    REPORT_SCHEMA = json.load(file)


class Bench:
    """A folder to work in, and a cache that all checks share: what one measured, the others know."""

    def __init__(self, folder, cache):
        self.folder, self.cache = folder, cache

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run(self, *arguments, status=0, **environment):
        result = command.run([*arguments, "--progress", "none"] if arguments[0] != "targets" else arguments, self.folder,
                             cache=self.cache, **environment)
        assert result.returncode == status, f"exit status {result.returncode}: {result.stderr or result.stdout}"
        assert (result.stderr == "") == (status == 0), result.stderr
        return result.stdout

    def report(self, *arguments, status=0, schema_too=True, **environment):
        """The command's report, checked against the schema, and what it printed."""
        printed = self.run(*arguments, "--json", "report.json", status=status, **environment)
        with open(self.path("report.json")) as file:
            report = json.load(file)
        os.remove(self.path("report.json"))
        wrong = schema.problems(report, REPORT_SCHEMA) if schema_too else []
        assert not wrong, "\n".join(wrong[:10])
        return report, printed

    def save(self, name, model):
        onnx.save(model, self.path(name))
        return name

    def outputs(self, folder="outputs"):
        return {name: np.load(self.path(folder, name)) for name in sorted(os.listdir(self.path(folder)))}


def close(actual, expected, budget=1e-4):
    assert actual.shape == expected.shape and actual.dtype == expected.dtype, (actual.shape, expected.shape)
    error, allowed = np.abs(actual - expected), budget * np.abs(expected).max() + 1e-3 * np.abs(expected)
    assert (error <= allowed).all(), f"largest error {error.max()}"


def onnxruntime_outputs(path, feed):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feed)


def check_run(bench):
    """The summary, the report, and outputs equal to ONNX Runtime's on inputs from files."""
    name = bench.save("net.onnx", tiny_models.small_net())
    image = np.random.default_rng(5).standard_normal((1, 3, 12, 12)).astype(np.float32)
    np.save(bench.path("image.npy"), image)
    report, printed = bench.report("run", name, "--inputs", "image=image.npy", "--save-outputs", "outputs")
    assert re.fullmatch(SUMMARY, printed), printed
    outputs = bench.outputs()
    assert list(outputs) == ["0_scores.npy"], outputs
    close(outputs["0_scores.npy"], onnxruntime_outputs(bench.path(name), {"image": image})[0])
    assert {"conv", "relu", "dense", "softmax"} <= {op["onnx_node"] for k in report["kernels"] for op in k["ops"]}, report
    assert report["latency_ms"]["count"] == len(report["latency_ms"]["samples"]) > 0
    assert sum(c["chosen"] for c in report["covers"]) == 1
    assert 0 < report["lower_bound_ms"] and report["search"]["exact"] == (report["search"]["gap"] < 1e-9)


def check_warm(bench):
    """What was measured once is not measured again: for the same model, nor with other names and weights."""
    name = bench.save("net.onnx", tiny_models.small_net())
    bench.run("run", name)
    report, _ = bench.report("run", name)
    assert report["estimates"]["measured"] == 0 and report["estimates"]["cached"] > 0, report["estimates"]
    other = bench.save("renamed.onnx", tiny_models.small_net(prefix="other/", seed=77))
    report, _ = bench.report("run", other, "--frozen-costs")
    assert report["estimates"]["measured"] == 0, report["estimates"]
    report, _ = bench.report("run", bench.save("wider.onnx", tiny_models.small_net(filters=11)))
    assert report["estimates"]["measured"] > 0, "other shapes need other measurements"


def check_diff(bench):
    """A report against itself changed nothing; a planted slow-down of 5% is status 7."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, _ = bench.report("bench", name, "--duration", "0.2")
    report["latency_ms"]["samples"] = [10 + 0.01 * (i % 7) for i in range(100)]
    for file, factor in (("before.json", 1), ("slower.json", 1.05), ("faster.json", 0.95)):
        latency = dict(report["latency_ms"], samples=[factor * s for s in report["latency_ms"]["samples"]])
        with open(bench.path(file), "w") as out:
            json.dump(dict(report, latency_ms=latency), out)
    for after, status, words in (("before.json", 0, "no change beyond noise"), ("slower.json", 7, "+5.0%"),
                                 ("faster.json", 0, ": faster")):
        result = command.run(["diff", "before.json", after], bench.folder)
        assert result.returncode == status and words in result.stdout, (result.stdout, result.stderr)
    assert "slower.json is slower than before.json by 5.0%, beyond noise" in command.run(
        ["diff", "before.json", "slower.json"], bench.folder).stderr


def check_every_target(bench):
    """Each backend of this build alone, with the host, gives ONNX Runtime's result and is the only one used."""
    name = bench.save("net.onnx", tiny_models.small_net())
    image = np.random.default_rng(6).standard_normal((1, 3, 12, 12)).astype(np.float32)
    np.save(bench.path("image.npy"), image)
    expected = onnxruntime_outputs(bench.path(name), {"image": image})[0]
    for target in re.findall(r"^(\w+) +available", bench.run("targets"), re.MULTILINE):
        flags, budget = (), 1e-4
        if target == "vnni":  # has nothing but kernels that round
            bench.run("run", name, "--targets", target, status=2)
            flags, budget = ("--max-error", "1e-2"), 1e-2
        # Quiet: what is too narrow for a target the host runs, with a warning.
        report, _ = bench.report("run", name, "--inputs", "image=image.npy", "--targets", f"{target},reference",
                                 "--save-outputs", target, "-q", *flags)
        close(bench.outputs(target)["0_scores.npy"], expected, budget)
        assert {k["target"] for k in report["kernels"]} <= {target, "reference"}, report["kernels"]


def check_seeds(bench):
    """The same seed gives the same outputs, another seed others."""
    name = bench.save("relu.onnx", tiny_models.relu_model((4, 16)))
    for folder, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        bench.run("run", name, "--targets", "reference", "--seed", seed, "--save-outputs", folder)
    a, b, c = (bench.outputs(folder)["0_y.npy"] for folder in "abc")
    assert np.array_equal(a, b) and not np.array_equal(a, c)


def check_verify(bench):
    """Against the reference; against given outputs; wrong ones are exit status 6 and say which output."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, printed = bench.report("verify", name, "--save-outputs", "expected")
    assert "verified against the reference" in printed and report["verification"]["within"], printed
    assert "verified against expected" in bench.run("verify", name, "--expect", "expected")
    wrong = np.load(bench.path("expected", "0_scores.npy"))
    wrong[0, 3] += 0.01
    np.save(bench.path("expected", "0_scores.npy"), wrong)
    report, printed = bench.report("verify", name, "--expect", "expected", status=6)
    assert "WRONG" in printed and not report["verification"]["within"], printed
    np.save(bench.path("expected", "0_scores.npy"), wrong[:, :-1])
    bench.run("verify", name, "--expect", "expected", status=6)


def check_verify_proves_something(bench):
    """Outputs that are zero whatever the input are named, in the report too; where there are no others it is status 6."""
    nodes = [helper.make_node("Sub", ["x", "far"], ["below"]), helper.make_node("Relu", ["below"], ["zero"]),
             helper.make_node("Relu", ["x"], ["y"])]
    for outputs, status in (("zero",), 6), (("zero", "y"), 0):
        net = tiny_models.model(nodes[:2 if status else 3], {"x": [2, 16]}, {name: [2, 16] for name in outputs},
                                {"far": np.full((1,), 1e6, np.float32)})
        name = bench.save("zero.onnx", net)
        result = command.run(["verify", name, "--targets", "reference", "--json", "zero.json"], bench.folder, cache=bench.cache)
        assert result.returncode == status, (result.returncode, result.stderr)
        assert "output 0 'zero': largest error 0, 0 of the largest value  proves nothing: all 0\n" in result.stdout, result.stdout
        assert ("; this proves nothing of some outputs: 'zero' is all 0" in result.stdout) == (status == 0), result.stdout
        assert result.stderr.count("warning: output 'zero' is all 0") == 1, result.stderr  # the compiler's
        with open(bench.path("zero.json")) as file:
            report = json.load(file)
        assert not (wrong := schema.problems(report, REPORT_SCHEMA)), wrong
        assert report["verification"]["uninformative"] == ["zero"] and report["verification"]["within"], report["verification"]
    report, _ = bench.report("verify", bench.save("net.onnx", tiny_models.small_net()))
    assert report["verification"]["uninformative"] == [], report["verification"]


def check_checks(bench):
    """A program is checked once for its weights and once for each inputs given; what that took is in the report."""
    def rows():
        with contextlib.closing(sqlite3.connect(os.path.join(bench.cache, "costs.db"))) as database:
            return database.execute("SELECT COUNT(*) FROM costs WHERE kind = 'check'").fetchone()[0]

    report, _ = bench.report("run", bench.save("net.onnx", tiny_models.small_net(filters=9)))
    assert {"candidates", "costs", "search", "covers", "in situ", "checking"} <= set(report["phases_s"]), report["phases_s"]
    assert report["phases_s"]["checking"] > 0, report["phases_s"]
    first = rows()
    report, _ = bench.report("run", "net.onnx", "--frozen-costs")
    assert rows() == first and report["phases_s"]["checking"] == 0, report["phases_s"]
    np.save(bench.path("image.npy"), np.ones((1, 3, 12, 12), np.float32))
    for _ in range(2):
        bench.run("run", "net.onnx", "--frozen-costs", "--inputs", "image=image.npy")
        assert rows() == first + 1, "the chosen cover, on these inputs"
    bench.save("net.onnx", tiny_models.small_net(filters=9, seed=78))
    report, _ = bench.report("run", "net.onnx", "--frozen-costs")
    assert rows() == first + 2 and report["phases_s"]["checking"] > 0, "other weights"


def check_partition(bench):
    """Text with a global function for each kernel of a toolchain; own kernels of several operators are inline functions."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, printed = bench.report("partition", name)
    assert printed.startswith('#[version = "0.0.5"]') and "def @main" in printed, printed
    toolchains = [k["target"] for k in report["kernels"] if k["target"] not in ("native", "reference")]
    assert sorted(re.findall(r'Compiler="(\w+)"', printed)) == sorted(toolchains), printed
    assert printed.count("global_symbol=") == printed.count("def @collage_") == len(toolchains), printed
    inline = [k for k in report["kernels"] if k["target"] == "native" and len(k["ops"]) > 1]
    assert printed.count("Primitive=1") == len(toolchains) + len(inline), printed
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
        {"name": "onednn", "rule": {"operators": ["nn.conv2d", "nn.bias_add", "nn.relu"], "combine": "any"}},
        {"name": "native"}], "incompatible": [["onednn", "native"]]}""")
    report, _ = bench.report("run", name, "--config", "own.json")
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
    """--exclude keeps a backend, or an operator, away; --pin keeps nodes on a backend; --threads is what is used."""
    name = bench.save("net.onnx", tiny_models.small_net())
    for flags in (["--exclude", "onednn:nn.softmax"], ["--pin", "soft.*=reference"]):
        for subcommand in ("partition", "run"):
            report, _ = bench.report(subcommand, name, "--targets", "onednn,reference", *flags, schema_too=subcommand == "run")
            targets = {op["op"]: k["target"] for k in report["kernels"] for op in k["ops"]}
            assert targets["nn.softmax"] == "reference" and targets["nn.conv2d"] == "onednn", targets
    report, _ = bench.report("run", name, "--targets", "onednn,reference", "--exclude", "onednn", "--threads", "1")
    assert {k["target"] for k in report["kernels"]} == {"reference"}, report["kernels"]
    assert report["env"]["threads"] == 1


def check_targets_of_one_kind(bench):
    """Two targets of one backend that differ in an option are two targets, whichever flag names them."""
    name = bench.save("net.onnx", tiny_models.small_net())
    both = ["native", "native -external=on"]
    flags = ("--targets", ",".join(both + ["reference"]))
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
        {"name": "native"}, {"name": "calling", "compiler": "native", "options": {"external": "on"}}]}""")
    report, _ = bench.report("run", name, "--config", "two.json")
    assert report["targets"] == both + ["reference"], report["targets"]


def check_bench(bench):
    """Statistics, and other runtimes beside them."""
    name = bench.save("net.onnx", tiny_models.small_net())
    line = rf"\s+median\s+\d+\.\d+ ms   p10\s+\d+\.\d+   p90\s+\d+\.\d+   \d+ runs"
    report, printed = bench.report("bench", name, "--iterations", "5", "--compare", "onnxruntime,openvino")
    for runtime in ("collage", "onnxruntime", "openvino"):
        assert re.search(rf"^{runtime}{line}$", printed, re.MULTILINE), printed
    ratio = r"\d+\.\d\dx \(\d+\.\d\d to \d+\.\d\d seen, (\d) turns\): not decided, 6 turns are needed"
    faster = re.search(rf"^speed-up over the faster of them: {ratio}$", printed, re.MULTILINE)
    assert faster and int(faster[1]) < 6, printed
    assert report["latency_ms"]["count"] >= 5
    for peer in ("onnxruntime", "openvino"):
        entry = report["peers"][peer]
        assert entry["version"].startswith(peer) and entry["count"] >= 5, entry
        assert re.search(rf"^over {peer} {ratio}; outputs differ by \S+ at most, \S+ of the largest value$", printed, re.MULTILINE), printed
        assert entry["difference"]["within"] and 0 <= entry["difference"]["max_rel"] < 1e-4, entry
        assert entry["speed_up"]["turns"] == int(faster[1]) and entry["speed_up"]["verdict"] == "few turns", entry


def check_against(bench):
    """Two databases' programs in turns; here one against itself."""
    name = bench.save("net.onnx", tiny_models.small_net())
    bench.run("run", name)
    printed = bench.run("bench", name, "--duration", "0.1", "--against", os.path.join(bench.cache, "costs.db"))
    line = r"\s+median\s+\d+\.\d+ ms   p10\s+\d+\.\d+   p90\s+\d+\.\d+   \d+ runs\n"
    pairs = re.fullmatch(rf"collage{line}the other{line}the other takes [+-]\d+\.\d% \(median of (\d+) pairs .*\)\n", printed)
    assert pairs and int(pairs[1]) >= 3, printed


def check_fresh_costs(bench):
    """A prediction from costs of the moment, beside that from the database; shared inputs, parts of tensors and copies included."""
    for name, model in {"net.onnx": tiny_models.small_net(), "parts.onnx": parts_model()}.items():
        bench.save(name, model)
        report, printed = bench.report("bench", name, "--duration", "0.1", "--fresh-costs")
        assert report["fresh_in_situ_ms"] > 0, report
        assert re.search(r"^predicted .*, in situ \d+\.\d+ ms, \d+\.\d+ ms just now, measured ", printed, re.MULTILINE), printed


def parts_model():
    """Joins and cuts of tensors, an index that must stay in range, and a result that is an input."""
    node = onnx.helper.make_node
    tensor = onnx.helper.make_tensor_value_info
    floats, indices = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    graph = onnx.helper.make_graph(
        [node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2), node("Relu", ["b"], ["c"]),
         node("Concat", ["c", "a"], ["d"], axis=1), node("Gather", ["d", "at"], ["y"], axis=0),
         node("Identity", ["x"], ["z"])],
        "parts", [tensor("x", floats, [4, 32]), tensor("at", indices, [3])],
        [tensor("y", floats, [3, 32]), tensor("z", floats, [4, 32])])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)


def trace_problems(trace):
    """Where a Chrome trace breaks the format (a JSON object of complete events) that chrome://tracing and Perfetto read."""
    found = [] if trace.get("displayTimeUnit") in ("ms", "ns") else ["displayTimeUnit"]
    if not isinstance(trace.get("traceEvents"), list) or not trace["traceEvents"]:
        return found + ["traceEvents"]
    last_end = {}
    for i, event in enumerate(trace["traceEvents"]):
        number = lambda key: isinstance(event.get(key), (int, float)) and not isinstance(event[key], bool) and event[key] >= 0
        found += [f"{i}: {key}" for key in ("ts", "dur") if not number(key)]
        found += [f"{i}: {key}" for key in ("pid", "tid") if not isinstance(event.get(key), int)]
        found += [f"{i}: {key}" for key in ("name", "cat") if not isinstance(event.get(key), str) or not event[key]]
        found += [] if event.get("ph") == "X" else [f"{i}: ph"]
        found += [] if isinstance(event.get("args", {}), dict) else [f"{i}: args"]
        if found:
            break
        track = event["pid"], event["tid"]
        if event["ts"] < last_end.get(track, 0) - 1e-3:
            found.append(f"{i}: begins before the one before it ends")
        last_end[track] = event["ts"] + event["dur"]
    return found


def check_profile(bench):
    """The trace is valid, holds every step once, and calls kernels what report, explain and log call them."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, _ = bench.report("bench", name, "--duration", "0.1", "--profile", "trace.json")
    with open(bench.path("trace.json")) as file:
        trace = json.load(file)
    assert not (wrong := trace_problems(trace)), wrong
    steps = [event["name"] for event in trace["traceEvents"]]
    assert steps == [step["name"] for step in report["timeline"]]
    kernels = {kernel["name"] for kernel in report["kernels"]}
    assert kernels | {c["name"] for c in report["conversions"]} == set(steps) - {s for s in steps if s.startswith("copy")}
    explained = bench.run("explain", name)
    logged = command.run(["run", name, "-v", "--progress", "none"], bench.folder, cache=bench.cache).stderr
    for kernel in kernels:
        assert kernel in explained and kernel in logged, kernel
    for event in trace["traceEvents"]:  # and each way to break it is seen
        for change in ({"ph": "Z"}, {"ts": "0"}, {"dur": -1}, {"name": ""}, {"tid": None}):
            assert trace_problems(dict(trace, traceEvents=[event | change])), change
    first = trace["traceEvents"][0]  # of one kernel, maybe
    second = first | {"ts": first["ts"] + first["dur"] + 1}
    assert not trace_problems(dict(trace, traceEvents=[first, second]))
    assert trace_problems(dict(trace, traceEvents=[second, first])), "the order of events is not seen"


def lowered_rows(bench):
    """The measured variants that round more than float32 does, in what all checks share."""
    with contextlib.closing(sqlite3.connect(os.path.join(bench.cache, "costs.db"))) as database:
        found = database.execute("SELECT value FROM costs WHERE kind = 'function' AND context LIKE '%lowered'").fetchall()
    return {value for value, in found}


def check_lowering(bench):
    """With --max-error, and only then, lowered kernels are measured; what is chosen keeps to the budget."""
    name = bench.save("rows.onnx", tiny_models.few_rows())
    flags = ("--targets", "native,reference", "--save-outputs")
    before = lowered_rows(bench) if os.path.exists(os.path.join(bench.cache, "costs.db")) else set()
    bench.run("run", name, *flags, "full")
    assert lowered_rows(bench) == before
    bench.run("run", name, *flags, "lowered", "--max-error", "0.02")
    rows = lowered_rows(bench) - before
    assert any("bf16 weights" in row for row in rows), f"nothing was lowered: {rows}"
    full, lowered = (bench.outputs(folder)["0_scores.npy"] for folder in ("full", "lowered"))
    assert np.abs(full - lowered).max() <= 0.02 * np.abs(full).max()


def check_max_error(bench):
    """--max-error lets kernels round, within the budget; without it nothing is lowered and no key changes."""
    name = bench.save("net.onnx", tiny_models.small_net())
    flags = ("--targets", "onednn,openvino,reference")
    bench.run("run", name, *flags)
    report, _ = bench.report("run", name, *flags, "--max-error", "0.02", "--save-outputs", "lowered")
    covers = [cover["name"] for cover in report["covers"]]
    assert sum(cover["chosen"] for cover in report["covers"]) == 1 and len(covers) == len(set(covers)), covers
    bench.run("run", name, *flags, "--max-error", "0.02", "--frozen-costs")  # all of it is known now
    report, printed = bench.report("verify", name, *flags, "--max-error", "0.02")
    assert report["verification"]["max_rel"] <= 0.02 and "(|a-b| <= 0.02 max|b|)" in printed, printed
    report, _ = bench.report("run", name, *flags, "--frozen-costs", "--save-outputs", "full")
    assert report["estimates"]["measured"] == 0
    assert not any("bf16" in k["variant"] for k in report["kernels"]), report["kernels"]
    full, lowered = (bench.outputs(folder)["0_scores.npy"] for folder in ("full", "lowered"))
    assert np.abs(full - lowered).max() <= 0.02 * np.abs(full).max()
    report, _ = bench.report("verify", name, *flags, "--max-error", "1e-4")
    assert report["verification"]["max_rel"] <= 1e-4, report["verification"]


def check_targets(bench):
    """Every backend has a line that says whether it is there."""
    printed = bench.run("targets").splitlines()
    assert re.search(r", \d+ cores for this process$", printed[0]), printed
    lines = dict(line.split(maxsplit=1) for line in printed[1:])
    assert {"onednn", "native", "openvino", "amx", "blas", "reference"} <= set(lines), lines
    assert all(re.match(r"available|unavailable|not built +install ", text) for text in lines.values()), lines


def check_strange_names(bench):
    """Names of inputs, outputs and files may hold what shells and file systems dislike."""
    names = {"x": """a=b:c/"d" 'é'""", "y": """out=/../"y":"""}
    name = bench.save("strange = name.onnx", tiny_models.relu_model((2, 3), names["x"], names["y"]))
    values = np.float32([[-1, 2, -3], [4, -5, 6]])
    np.save(bench.path("in=put.npy"), values)
    bench.run("run", name, "--targets", "reference", "--inputs", names["x"] + "=in=put.npy", "--shapes", names["x"] + "=2x3",
              "--save-outputs", "out=puts")
    (saved, output), = bench.outputs("out=puts").items()
    assert saved.startswith("0_out") and np.array_equal(output, np.maximum(values, 0)), saved
    assert sorted(os.listdir(bench.folder)) == ["in=put.npy", "out=puts", "strange = name.onnx"], os.listdir(bench.folder)


def check_dynamic_dimension(bench):
    """--dim and --shapes give a dynamic dimension its value."""
    name = bench.save("dynamic.onnx", tiny_models.relu_model(("batch", 3)))
    for flags, batch in ((("--dim", "batch=5"), 5), (("--shapes", "x=7x3"), 7)):
        bench.run("run", name, "--targets", "reference", *flags, "--save-outputs", str(batch))
        assert bench.outputs(str(batch))["0_y.npy"].shape == (batch, 3)


def check_tensor_programs(bench):
    """A module of a graph, a tensor program and a library's function."""
    tiny_models.write(bench.folder, "program.relay", tiny_models.PROGRAM)
    x = np.array([[1, -2, 3, -4]], np.float32)
    w = np.arange(12, dtype=np.float32).reshape(4, 3) - 5
    np.save(bench.path("x.npy"), x)
    np.save(bench.path("w.npy"), w)
    for targets in ("reference", "native,blas"):
        bench.run("run", "program.relay", "--targets", targets, "--inputs", "x=x.npy", "--inputs", "w=w.npy",
                  "--save-outputs", "outputs")
        assert np.array_equal(bench.outputs()["0_output0.npy"], np.maximum(2 * x @ w, 0)), targets


def check_relay(bench):
    """Relay text runs like a model."""
    tiny_models.write(bench.folder, "relu.relay", tiny_models.RELAY)
    np.save(bench.path("x.npy"), np.float32([[-1, 2, -3, 4]]))
    bench.run("run", "relu.relay", "--targets", "reference", "--inputs", "x=x.npy", "--save-outputs", "outputs")
    assert np.array_equal(bench.outputs()["0_output0.npy"], [[0, 2, 0, 4]])


CHECKS = (check_run, check_warm, check_diff, check_every_target, check_seeds, check_verify, check_verify_proves_something,
          check_checks, check_partition, check_config,
          check_configured_targets, check_light_partition, check_one_toolchain, check_constraints, check_targets_of_one_kind, check_bench, check_against, check_fresh_costs, check_profile,
          check_lowering, check_max_error, check_targets, check_strange_names, check_dynamic_dimension, check_relay, check_tensor_programs)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as shared:
        sys.exit(checks.run(CHECKS, sys.argv[1:], lambda folder: Bench(folder, os.path.join(shared, "cache"))))
