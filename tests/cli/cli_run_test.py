"""run, verify, partition and targets do what they say on tiny models.

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
from onnx import helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import command
import partition_checks
import schema
import tiny_models
from workbench import REPORT_SCHEMA, Bench, close, onnxruntime_outputs

MS = r"\d+\.\d+ ms"
SUMMARY = (rf"\S+ ( \w+ \d+ ops? in \d+ kernels? {MS} ·)+ (no conversions|conversions \d+, {MS})\n"
           rf"predicted {MS} \((exact search|search within [\d.e+-]+%)(, \d+ candidates truncated)?\), isolated costs {MS}(, in situ {MS})?, measured {MS} ± \d+\.\d+ · "
           rf"(no single backend covers this model|best single backend: \w+ {MS} while compiling)\n")


def check_run(bench):
    """The summary, the report, and outputs equal to ONNX Runtime's on inputs from files."""
    name = bench.save("net.onnx", tiny_models.small_net())
    image = np.random.default_rng(5).standard_normal((1, 3, 12, 12)).astype(np.float32)
    np.save(bench.path("image.npy"), image)
    report, printed = bench.report("run", name, "--inputs", "image=image.npy", "--save-outputs", "outputs", "--effort", "fast")
    assert re.fullmatch(SUMMARY, printed), printed
    outputs = bench.outputs()
    assert list(outputs) == ["0_scores.npy"], outputs
    close(outputs["0_scores.npy"], onnxruntime_outputs(bench.path(name), {"image": image})[0])
    assert {"conv", "relu", "dense", "softmax"} <= {op["onnx_node"] for k in report["kernels"] for op in k["ops"]}, report
    assert report["latency_ms"]["count"] == len(report["latency_ms"]["samples"]) > 0
    assert sum(c["chosen"] for c in report["covers"]) == 1
    assert 0 < report["lower_bound_ms"] and report["search"]["exact"] == (report["search"]["gap"] < 1e-9)


def check_first_answer(bench):
    """The answer comes first, without measuring; a budget of seconds measures behind it, and the plan is known from then on."""
    name = bench.save("net.onnx", tiny_models.small_net(filters=13))
    image = np.random.default_rng(5).standard_normal((1, 3, 12, 12)).astype(np.float32)
    np.save(bench.path("image.npy"), image)
    for budget, hint in ((), "a first answer: .*"), ((), "as chosen before"), (("--budget", "60"), ".*single backend.*"), ((), ".*single backend.*"):
        report, printed = bench.report("run", name, "--inputs", "image=image.npy", "--save-outputs", "outputs", *budget)
        assert re.search(rf"· {hint}\n$", printed), printed
        assert (report["estimates"]["measured"] > 0) == bool(budget), report["estimates"]
        close(bench.outputs()["0_scores.npy"], onnxruntime_outputs(bench.path(name), {"image": image})[0])


def check_warm(bench):
    """What was measured once is not measured again: for the same model, nor with other names and weights."""
    name = bench.save("net.onnx", tiny_models.small_net())
    bench.run("run", name, "--effort", "fast")
    report, _ = bench.report("run", name)
    assert report["estimates"]["measured"] == 0 and report["estimates"]["cached"] > 0, report["estimates"]
    other = bench.save("renamed.onnx", tiny_models.small_net(prefix="other/", seed=77))
    report, _ = bench.report("run", other, "--frozen-costs")
    assert report["estimates"]["measured"] == 0, report["estimates"]
    report, _ = bench.report("run", bench.save("wider.onnx", tiny_models.small_net(filters=11)), "--effort", "fast")
    assert report["estimates"]["measured"] > 0, "other shapes need other measurements"


def check_every_target(bench):
    """Each backend of this build alone, with the host, gives ONNX Runtime's result and is the only one used."""
    name = bench.save("net.onnx", tiny_models.small_net())
    image = np.random.default_rng(6).standard_normal((1, 3, 12, 12)).astype(np.float32)
    np.save(bench.path("image.npy"), image)
    expected = onnxruntime_outputs(bench.path(name), {"image": image})[0]
    for target in re.findall(r"^(\w+) +available", bench.run("targets"), re.MULTILINE):
        # Quiet: what is too narrow for a target the host runs, with a warning.
        report, _ = bench.report("run", name, "--inputs", "image=image.npy", "--targets", f"{target},reference",
                                 "--save-outputs", target, "-q")
        close(bench.outputs(target)["0_scores.npy"], expected, 1e-4)
        # A target on a device of its own says which.
        assert {k["target"].split()[0] for k in report["kernels"]} <= {target, "reference"}, report["kernels"]


def check_random_inputs(bench):
    """Inputs that are not given are drawn, the same in every run."""
    name = bench.save("relu.onnx", tiny_models.relu_model((4, 16)))
    for folder in "ab":
        bench.run("run", name, "--targets", "reference", "--save-outputs", folder)
    a, b = (bench.outputs(folder)["0_y.npy"] for folder in "ab")
    assert np.array_equal(a, b) and len(np.unique(a)) > 16


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


def check_verify_beside_a_mask(bench):
    """Values are judged by their own size, not by that of a mask's fill among them."""
    for fill in -1e4, -3.4e38:
        mask = np.arange(8 * 32).reshape(8, 32) % 3 != 0
        nodes = [helper.make_node("Where", ["mask", "x", "fill"], ["y"])]
        net = tiny_models.model(nodes, {"x": [8, 32]}, {"y": [8, 32]}, {"mask": mask, "fill": np.array(fill, np.float32)})
        name = bench.save("masked.onnx", net)
        bench.run("verify", name, "--save-outputs", "masked")
        right = np.load(bench.path("masked", "0_y.npy"))
        bench.run("verify", name, "--expect", "masked")
        for row in range(5):  # the largest and the second change places
            order = np.argsort(right[row])
            right[row, order[-1]], right[row, order[-2]] = right[row, order[-2]], right[row, order[-1]]
        np.save(bench.path("masked", "0_y.npy"), right)
        assert "WRONG" in bench.run("verify", name, "--expect", "masked", status=6)


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
        assert "output 0 'zero': largest error 0, 0 of the largest value like it, 0 of the allowed error  proves nothing: all 0\n" in result.stdout, result.stdout
        assert ("; this proves nothing of some outputs: 'zero' is all 0" in result.stdout) == (status == 0), result.stdout
        assert result.stderr.count("warning: output 'zero' is all 0") == 1, result.stderr  # the compiler's
        with open(bench.path("zero.json")) as file:
            report = json.load(file)
        assert not (wrong := schema.problems(report, REPORT_SCHEMA)), wrong
        assert report["verification"]["uninformative"] == ["zero"] and report["verification"]["within"], report["verification"]
    report, _ = bench.report("verify", bench.save("net.onnx", tiny_models.small_net()))
    assert report["verification"]["uninformative"] == [], report["verification"]


def check_half_precision(bench):
    """A float16 model runs on backends that know float32 alone, and is held to its own arithmetic."""
    name = bench.save("half.onnx", tiny_models.in_float16(tiny_models.small_net()))
    report, printed = bench.report("verify", name, "--save-outputs", "half")
    assert "(|a-b| <= 0.01 s, as the model rounds to float16)" in printed, printed
    assert report["verification"]["max_rel"] < 0.01, report["verification"]
    assert not any(k["target"].startswith("reference") for k in report["kernels"]), report["kernels"]
    scores = bench.outputs("half")["0_scores.npy"]
    assert scores.dtype == np.float16, scores.dtype
    assert "verified against half" in bench.run("verify", name, "--expect", "half")
    np.save(bench.path("half", "0_scores.npy"), (scores + np.float16(0.02) * scores.max()).astype(np.float16))
    bench.run("verify", name, "--expect", "half", status=6)


def check_checks(bench):
    """A program is checked once for its weights and once for each inputs given; what that took is in the report."""
    def rows():
        with contextlib.closing(sqlite3.connect(os.path.join(bench.cache, "costs.db"))) as database:
            return database.execute("SELECT COUNT(*) FROM costs WHERE kind = 'check'").fetchone()[0]

    report, _ = bench.report("run", bench.save("net.onnx", tiny_models.small_net(filters=9)), "--effort", "fast")
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
    assert report["verification"]["max_rel"] <= 0.02 and "(|a-b| <= 0.02 s)" in printed, printed
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
    lines = dict(line.split(maxsplit=1) for line in printed[1:] if not line.startswith(" "))  # below a backend: its devices
    assert {"onednn", "native", "openvino", "amx", "blas", "reference"} <= set(lines), lines
    assert all(re.match(r"available|unavailable|not built +install ", text) for text in lines.values()), lines


def check_nan(bench):
    """Under strict accuracy NaN goes through a Relu, and no kernel is used that might lose or spread it; what might is named."""
    name = bench.save("relu.onnx", tiny_models.relu_model((1, 4096)))
    values = np.linspace(-1, 1, 4096, dtype=np.float32).reshape(1, 4096)
    values[0, ::7] = np.nan
    np.save(bench.path("nan.npy"), values)
    available = re.findall(r"^(\w+) +available", bench.run("targets"), re.MULTILINE)
    for target in set(available) & {"onednn", "openvino", "native"}:
        flags = ("--targets", f"{target},reference", "--accuracy", "strict", "--inputs", "x=nan.npy")
        report, _ = bench.report("run", name, *flags, "--save-outputs", "outputs", warned=target != "native")
        (output,) = bench.outputs().values()
        assert np.array_equal(output, np.maximum(values, 0), equal_nan=True), target
        assert not any(k.get("loses_nan") or k.get("spreads_nan") for k in report["kernels"]), report["kernels"]
        assert ("reference" in {k["target"] for k in report["kernels"]}) == (target != "native"), report["kernels"]
    if "onednn" in available:
        assert re.search(r"^ +may lose NaN in nn.relu, clip", bench.run("targets"), re.MULTILINE)
        report, _ = bench.report("run", name, "--targets", "onednn")
        assert [k["loses_nan"] for k in report["kernels"]] == [True], report["kernels"]
        assert ", NaN: may lose it" in bench.run("explain", name, "--targets", "onednn")


def spoiled_convolution(bench):
    """A convolution, one of whose input's numbers is NaN, and a Relu: the model's name, and which results depend on it."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], "conv", kernel_shape=[3, 3], pads=[1] * 4), helper.make_node("Relu", ["a"], ["y"], "relu")]
    shape = [1, 16, 12, 12]
    name = bench.save("spoiled.onnx", tiny_models.model(nodes, {"x": shape}, {"y": shape}, {"w": tiny_models.weights(16, 16, 3, 3)}))
    values = np.random.default_rng(9).standard_normal(shape, np.float32)
    values[0, 3, 6, 6] = np.nan
    np.save(bench.path("spoiled.npy"), values)
    spoiled = np.zeros(shape, bool)
    spoiled[0, :, 5:8, 5:8] = True
    return name, spoiled


def check_nan_of_a_pixel(bench):
    """Under strict accuracy a pixel that is NaN makes NaN of the results whose taps read it, all of them and no other, on every target."""
    name, spoiled = spoiled_convolution(bench)
    available = re.findall(r"^(\w+) +available", bench.run("targets"), re.MULTILINE)
    given = ("--accuracy", "strict", "--inputs", "x=spoiled.npy", "--save-outputs", "outputs")
    for flags in ((), *(("--targets", f"{target},reference") for target in available if target != "reference")):
        report, _ = bench.report("run", name, *flags, *given, warned=None)
        (output,) = bench.outputs().values()
        assert np.array_equal(np.isnan(output), spoiled), (flags, np.isnan(output).sum(), report["kernels"])


def check_attention_strictly(bench):
    """Attention under a causal mask runs on kernels that keep NaN, in the parts that the model has: NaN in the last value reaches all results."""
    shape, tokens = [1, 2, 48, 16], 48
    nodes = [helper.make_node("Transpose", ["k"], ["kt"], "turn", perm=[0, 1, 3, 2]), helper.make_node("MatMul", ["q", "kt"], ["products"], "qk"),
             helper.make_node("Mul", ["products", "scale"], ["scaled"], "scaled"), helper.make_node("Add", ["scaled", "mask"], ["scores"], "mask"),
             helper.make_node("Softmax", ["scores"], ["weights"], "softmax", axis=-1), helper.make_node("MatMul", ["weights", "v"], ["y"], "mixed")]
    mask = np.triu(np.full((tokens, tokens), -np.inf, np.float32), 1)
    name = bench.save("attention.onnx", tiny_models.model(nodes, {n: shape for n in "qkv"}, {"y": shape}, {"scale": np.float32(0.25), "mask": mask}))
    given = {n: np.random.default_rng(i).standard_normal(shape, np.float32) for i, n in enumerate("qkv")}
    available = re.findall(r"^(\w+) +available", bench.run("targets"), re.MULTILINE)
    for spoiled in (False, True):
        if spoiled:
            given["v"][0, 1, -1, 3] = np.nan
        for n, values in given.items():
            np.save(bench.path(f"{n}.npy"), values)
        report, _ = bench.report("run", name, "--accuracy", "strict", *(f for n in "qkv" for f in ("--inputs", f"{n}={n}.npy")), "--save-outputs", "outputs")
        (output,) = bench.outputs().values()
        expected = onnxruntime_outputs(bench.path(name), given)[0]
        assert np.array_equal(np.isnan(output), np.isnan(expected)) and np.isnan(output).any() == spoiled, np.isnan(output).sum()
        close(np.nan_to_num(output), np.nan_to_num(expected))
        assert "native" not in available or "reference" not in {k["target"] for k in report["kernels"]}, report["kernels"]
    assert "nn.attention" in bench.run("partition", name)
    bench.run("verify", name, "--accuracy", "strict")


def check_spreading_is_marked(bench):
    """Kernels that may make NaN of numbers are named by targets, and where a plan has them."""
    name, _ = spoiled_convolution(bench)
    across = helper.make_node("LRN", ["x"], ["y"], "across", size=3)
    lrn = bench.save("lrn.onnx", tiny_models.model([across], {"x": [1, 8, 6, 6]}, {"y": [1, 8, 6, 6]}))
    listed = bench.run("targets")
    for target, model, kernels in (("native", name, r".*\bwinograd4\b.*"), ("openvino", lrn, r"nn\.lrn")):
        if not re.search(rf"^{target} +available", listed, re.MULTILINE):
            continue
        assert re.search(rf"^{target} .*\n(?: +may lose .*\n)? +may spread NaN and infinity by {kernels}$", listed, re.MULTILINE), listed
        report, _ = bench.report("run", model, "--targets", target)
        assert [k.get("spreads_nan") for k in report["kernels"]] == [True] and "loses_nan" not in report["kernels"][0], report["kernels"]
        said = bench.run("explain", model, "--targets", target)
        assert ", NaN: may spread it\n" in said and "1 kernels may lose or spread NaN; --accuracy strict leaves such out" in said, said


def check_nan_given(bench):
    """NaN among the inputs given is among what programs are checked with: what loses it there is left to the host."""
    nodes = [helper.make_node("ReduceMax", ["x"], ["most"], "most", axes=[3], keepdims=0), helper.make_node("Relu", ["x"], ["positive"], "relu"),
             helper.make_node("MaxPool", ["x"], ["windows"], "pool", kernel_shape=[2, 2], strides=[2, 2])]
    shape = [1, 4, 16, 16]
    name = bench.save("most.onnx", tiny_models.model(nodes, {"x": shape}, {"most": shape[:3], "positive": shape, "windows": [1, 4, 8, 8]}))
    x = np.random.default_rng(4).standard_normal(shape, np.float32)
    x[0, :, ::3, ::5] = np.nan
    np.save(bench.path("x.npy"), x)
    right = [x.max(axis=3), np.maximum(x, 0), x.reshape(1, 4, 8, 2, 8, 2).max(axis=(3, 5))]
    available = re.findall(r"^(\w+) +available", bench.run("targets"), re.MULTILINE)
    for flags in ((), *(("--targets", f"{target},reference") for target in available if target in ("onednn", "openvino", "native"))):
        bench.run("run", name, *flags, "--inputs", "x=x.npy", "--save-outputs", "outputs", warned=None)
        for output, expected in zip(bench.outputs().values(), right):
            assert np.array_equal(output, expected, equal_nan=True), (flags, output, expected)


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


def check_constant(bench):
    """--constant gives an input that decides shapes its value, for the program and for what is saved of it."""
    name = bench.save("reshape.onnx", tiny_models.reshape_model())
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(bench.path("x.npy"), values)
    np.save(bench.path("shape.npy"), np.int64([3, 2]))
    given = ("--targets", "reference", "--constant", "shape=shape.npy")
    bench.run("run", name, *given, "--inputs", "x=x.npy", "--save-outputs", "outputs")
    assert np.array_equal(bench.outputs()["0_y.npy"], np.maximum(values, 0).reshape(3, 2))
    bench.run("compile", name, *given, "-o", "reshape.collage")
    bench.run("run", "reshape.collage", "--inputs", "x=x.npy", "--save-outputs", "loaded")
    assert np.array_equal(bench.outputs("loaded")["0_y.npy"], np.maximum(values, 0).reshape(3, 2))
    for verb in ("verify", "explain", "partition", "tune"):
        bench.run(verb, name, *given)


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


SCRIPT = """import tvm.script
n = 4
@tvm.script.ir_module
class M:
    @T.prim_func
    def twice(X: T.Buffer[(1, n), "float32"], Y: T.Buffer[(1, n), "float32"]):
        for i, j in T.grid(1, n):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] * 2.0
    @R.function
    def main(x: R.Tensor[(1, n), "float32"]):
        lv = R.call_tir(twice, (x,), (1, n), dtype="float32")
        return R.nn.relu(lv)
"""


def check_script(bench):
    """So does script, whose files end in either way; what is wrong in it has a place."""
    np.save(bench.path("x.npy"), np.float32([[-1, 2, -3, 4]]))
    for name in ("m.script", "m.py"):
        tiny_models.write(bench.folder, name, SCRIPT)
        bench.run("run", name, "--targets", "reference", "--inputs", "x=x.npy", "--save-outputs", "outputs")
        assert np.array_equal(bench.outputs()["0_output0.npy"], [[0, 4, 0, 8]])
    assert "@twice" in bench.run("partition", "m.script", "--targets", "reference")
    bench.run("inspect", "m.script")
    tiny_models.write(bench.folder, "bad.script", SCRIPT.replace("R.nn.relu", "R.rellu"))
    refused = command.run(["run", "bad.script"], bench.folder, cache=bench.cache)
    assert refused.returncode == 4 and refused.stderr.endswith("bad.script: line 14, column 16: unknown operator 'R.rellu'\n"), refused


CHECKS = (check_run, check_first_answer, check_warm, check_every_target, check_random_inputs, check_verify, check_verify_beside_a_mask,
          check_verify_proves_something, check_half_precision, check_checks, *partition_checks.CHECKS, check_lowering, check_max_error,
          check_targets, check_nan, check_nan_of_a_pixel, check_attention_strictly, check_spreading_is_marked, check_nan_given, check_strange_names, check_dynamic_dimension, check_constant, check_relay, check_script, check_tensor_programs)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as shared:
        sys.exit(checks.run(CHECKS, sys.argv[1:], lambda folder: Bench(folder, os.path.join(shared, "cache"))))
