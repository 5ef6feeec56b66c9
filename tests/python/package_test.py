"""The Python package, as the build leaves it: what it computes, refuses, reports and shows.

    python tests/python/package_test.py [CHECK...]

Takes the build that COLLAGE_BIN lies in (default build/release). What needs torch is skipped where there is none. Prints "N passed,
0 failed" or what went wrong.
"""

import ast
import json
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import onnx
import onnxruntime

import built_package
import tiny_models
from built_package import program, saved

if built_package.BUILT:
    import collage


class SpeaksDLPack:
    """A tensor of a library that nobody knows."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **how):
        return self._array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def refused(kind, call, *words):
    try:
        call()
    except kind as wrong:
        assert all(word in str(wrong) for word in words), wrong
        return wrong
    raise AssertionError(f"{kind.__name__} was not raised")


def check_results(folder):
    model = tiny_models.small_net()
    compiled = program(folder, model)
    image = np.random.default_rng(0).random((1, 3, 12, 12), np.float32)
    (expected,) = onnxruntime.InferenceSession(os.path.join(folder, "net.onnx")).run(None, {"image": image})
    for scores in (compiled(image), compiled(image=image), compiled.run({"image": image})["scores"], compiled(SpeaksDLPack(image)),
                   compiled(image.transpose(0, 1, 3, 2).copy().transpose(0, 1, 3, 2))):
        assert isinstance(scores, np.ndarray) and scores.shape == (1, 10) and scores.dtype == np.float32
        np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-6)
    image.setflags(write=False)
    kept = compiled(image)
    del compiled
    np.testing.assert_allclose(kept, expected, rtol=1e-5, atol=1e-6)
    # Several are a tuple, in the model's order, whatever their names.
    nodes = [onnx.helper.make_node("Abs", ["x"], ["z"]), onnx.helper.make_node("Neg", ["x"], ["a"])]
    compiled = program(folder, tiny_models.model(nodes, {"x": [2, 3]}, {"z": [2, 3], "a": [2, 3]}))
    x = -np.arange(6, dtype=np.float32).reshape(2, 3)
    both = compiled(x)
    assert isinstance(both, tuple), type(both)
    np.testing.assert_array_equal(both, (np.abs(x), -x))
    x[0] = 1
    into = {name: np.empty((2, 3), np.float32) for name in ("a", "z")}
    compiled.run({"x": x}, into)
    np.testing.assert_array_equal((into["z"], into["a"]), (np.abs(x), -x))


def check_measured_program(folder):
    """Every target takes part: a worker measures, progress is told, kernels that were compiled here find the runtime's hooks."""
    heard = []
    model = collage.load(saved(folder, tiny_models.small_net()))
    compiled = model.compile(database=os.path.join(folder, "costs.db"), effort="fast", progress=heard.append)
    assert {step.phase for step in heard} and all(step.done <= step.total for step in heard), heard
    assert "refused" in str(heard[0]), heard[0]
    alone = model.compile(database=os.path.join(folder, "costs.db"), targets=["native"])
    assert {kernel["target"] for kernel in alone.report["kernels"]} >= {"native"}, alone.report["kernels"]
    image = np.ones((1, 3, 12, 12), np.float32)
    (expected,) = onnxruntime.InferenceSession(os.path.join(folder, "net.onnx")).run(None, {"image": image})
    for each in (compiled, alone):
        np.testing.assert_allclose(each(image), expected, rtol=1e-3, atol=1e-5)


def check_background_tuning(folder):
    """Calls are right while a better program takes the place of theirs, and after it was replaced."""
    name = saved(folder, tiny_models.small_net())
    model, database = collage.load(name), os.path.join(folder, "costs.db")
    served = model.compile(database=database)
    assert served.report["search"]["light"] and served.report["estimates"]["measured"] == 0, served.report["search"]
    image = np.ones((1, 3, 12, 12), np.float32)
    (expected,) = onnxruntime.InferenceSession(name).run(None, {"image": image})
    tuning = model.tune(served.replace, database=database)
    calls = 0
    while not tuning.done or calls < 1000:
        np.testing.assert_allclose(served(image), expected, rtol=1e-3, atol=1e-5)
        calls += 1
    tuning.wait()
    assert model.compile(database=database).report["covers"][0]["origin"] == "known plan"
    served.replace(model.compile(database=database, targets="onednn"))
    assert {kernel["target"] for kernel in served.report["kernels"]} <= {"onednn", "reference"}
    np.testing.assert_allclose(served(image), expected, rtol=1e-3, atol=1e-5)
    refused(collage.Error, lambda: served.replace(program(folder, tiny_models.relu_model((3, 5)))), "differ")
    stopped = model.tune(served.replace, database=os.path.join(folder, "other.db"))
    stopped.stop()
    stopped.wait()
    assert stopped.done


def check_costs(folder):
    """Costs that a function gives stand in place of measured ones; the fastest program is found by the clock all the same."""
    model = collage.load(saved(folder, tiny_models.small_net()))
    image = np.random.default_rng(0).random((1, 3, 12, 12), np.float32)
    expected = model.compile(targets="reference")(image)
    asked = set()

    def costs(function, target, variant):
        asked.add((target, "nn.conv2d" in function, variant != ""))
        return {"native": 2e-3, "onednn": 3e-3}.get(target)

    program = model.compile(targets="native,onednn", threads=1, effort="fast", costs=costs, database=os.path.join(folder, "given.db"))
    for kernel in program.report["kernels"]:
        assert kernel["cost_ms"]["median"] == {"native": 2.0, "onednn": 3.0}[kernel["target"]], kernel
    np.testing.assert_allclose(program(image), expected, rtol=1e-3, atol=1e-5)
    assert {target for target, is_convolution, varies in asked if is_convolution and varies} >= {"native", "onednn"}, asked
    for wrong, words in ((lambda *kernel: "much", "it gives no number of seconds"), (lambda *kernel: 1 / 0, "ZeroDivisionError")):
        refused(collage.Error, lambda: model.compile(targets="native,onednn", effort="fast", costs=wrong), words)


def check_memory(folder):
    """What `empty` makes is aligned; results go where the caller says."""
    compiled = program(folder, tiny_models.relu_model((3, 5)))
    x, y = collage.empty((3, 5), "float32"), collage.empty((3, 5), "float32")
    assert x.ctypes.data % 64 == 0 and y.ctypes.data % 64 == 0
    x[...] = np.arange(15).reshape(3, 5) - 7
    y[...] = -1
    result = compiled.run({"x": x}, {"y": y})
    assert result["y"] is y
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    fixed = np.zeros((3, 5), np.float32)
    fixed.setflags(write=False)
    refused(TypeError, lambda: compiled.run({"x": x}, {"y": fixed}), "output 'y'", "writable")


def check_overlaps(folder):
    """An output lies in no input and in no other output, in programs and artifacts, whatever library the arrays are of."""
    nodes = [onnx.helper.make_node(name, ["x"], [name]) for name in ("Relu", "Neg")]
    compiled = program(folder, tiny_models.model(nodes, {"x": [4, 4]}, {"Relu": [4, 4], "Neg": [4, 4]}))
    compiled.save(os.path.join(folder, "two.collage"))
    memory = np.arange(64, dtype=np.float32) - 8
    part = lambda first: memory[first:first + 16].reshape(4, 4)
    for runs in (compiled, collage.load(os.path.join(folder, "two.collage"))):
        for x, relu, neg, words in ((part(0), part(0), part(32), ("'Relu'", "'x'")), (part(0), part(32), part(15), ("'Neg'", "'x'")),
                                    (part(0), part(32), part(40), ("'Neg'", "'Relu'")), (part(0), part(32), part(32), ("'Neg'", "'Relu'"))):
            before = memory.copy()
            wrong = refused(collage.Error, lambda: runs.run({"x": x}, {"Relu": relu, "Neg": neg}), "overlaps", *words)
            assert wrong.code == collage.ErrorCode.BAD_MODEL and np.array_equal(memory, before)
        runs.run({"x": part(0)}, {"Relu": part(16), "Neg": part(32)})
        np.testing.assert_array_equal(part(32), -part(0))


def check_refusals(folder):
    compiled = program(folder, tiny_models.relu_model((3, 5)))
    bad = collage.ErrorCode.BAD_MODEL
    wrong = refused(collage.Error, lambda: compiled(np.zeros((5, 3), np.float32)), "input 'x'", "(3, 5)", "(5, 3)")
    assert wrong.code == bad and isinstance(wrong.code, collage.ErrorCode)
    assert refused(collage.Error, lambda: compiled(np.zeros((3, 5))), "float32", "float64").code == bad
    assert refused(collage.Error, lambda: compiled(), "takes 1 inputs, not 0").code == bad
    assert refused(collage.Error, lambda: compiled.run({"z": 1}), "missing: x", "unknown: z").code == bad
    refused(TypeError, lambda: compiled([[1.0] * 5] * 3), "input 'x'", "got list")
    foreign = np.zeros((3, 5), ">f4")
    refused(TypeError, lambda: compiled(foreign), "input 'x'", "got ndarray of dtype >f4, whose bytes are not in this machine's order")
    refused(TypeError, lambda: compiled.run({"x": np.zeros((3, 5), np.float32)}, {"y": foreign}), "output 'y'", "not in this machine's order")
    refused(TypeError, lambda: collage.constant(foreign), "constant: ", "not in this machine's order")
    refused(TypeError, lambda: compiled(np.array([["x"] * 5] * 3)), "got ndarray of dtype <U1")
    assert refused(collage.Error, lambda: collage.load(os.path.join(folder, "absent.onnx")), "absent.onnx").code == bad
    model = collage.load(saved(folder, tiny_models.small_net()))
    assert refused(collage.Error, lambda: model.compile(targets="nobody"), "unknown target 'nobody'").code == collage.ErrorCode.USAGE
    assert refused(collage.Error, lambda: model.compile(frozen_costs=True, database=os.path.join(folder, "empty.db"))).code == \
        collage.ErrorCode.FROZEN_COSTS
    refused(ValueError, lambda: model.compile(effort="much"), "effort")


def check_names_as_text(folder):
    """One name is a list of it, several are told apart by commas; only a pin, which is a regular expression, may hold commas."""
    model = collage.load(saved(folder, tiny_models.small_net()))
    refused(collage.Error, lambda: model.compile(targets="nobody"), "unknown target 'nobody'")
    refused(collage.Error, lambda: model.compile(exclude="reference, nobody"), "--exclude nobody: ")
    refused(collage.Error, lambda: model.compile(pin="relu{1,2}=nobody"), "--pin relu{1,2}=nobody: ")


def check_ending_early(folder):
    """What progress raises ends the compilation and reaches its caller; the next one is not concerned."""
    model = collage.load(saved(folder, tiny_models.small_net()))

    def stop(_):
        raise KeyboardInterrupt

    database = os.path.join(folder, "costs.db")
    refused(KeyboardInterrupt, lambda: model.compile(database=database, effort="fast", progress=stop))
    compiled = model.compile(database=database, effort="fast")
    assert compiled.report["estimates"]["measured"] > 0, compiled.report["estimates"]


def check_lock(folder):
    """Python goes on while a program runs."""
    size = 700
    node = onnx.helper.make_node("MatMul", ["x", "x"], ["y"], "square")
    compiled = program(folder, tiny_models.model([node], {"x": [size, size]}, {"y": [size, size]}))
    x = np.ones((size, size), np.float32)
    running, done = threading.Event(), []

    def run():
        running.set()
        done.append(compiled(x))

    thread = threading.Thread(target=run)
    thread.start()
    running.wait()
    turns = 0
    while not done:
        turns += 1
    thread.join()
    assert turns > 1000, f"{turns} turns of a loop beside a run"
    assert done[0][0, 0] == size


def check_artifacts(folder):
    """What was saved gives the same bits and says the same of itself, from a file and from memory."""
    compiled = program(folder, tiny_models.small_net())
    path = os.path.join(folder, "net.collage")
    compiled.save(path)
    with open(path, "rb") as file:
        data = file.read()
    image = np.random.default_rng(0).random((1, 3, 12, 12), np.float32)
    expected = compiled(image)
    for source in (path, pathlib.Path(path), data, bytearray(data), memoryview(data)):
        loaded = collage.load(source)
        assert isinstance(loaded, collage.Program) and repr(loaded) == repr(compiled)
        for scores in (loaded(image), loaded(image=image), loaded(SpeaksDLPack(image)), loaded.run({"image": image})["scores"]):
            np.testing.assert_array_equal(scores, expected)
        into = collage.empty((1, 10), "float32")
        loaded.run({"image": image}, {"scores": into})
        np.testing.assert_array_equal(into, expected)
        assert loaded.report["kernels"] == compiled.report["kernels"] and loaded.report["model"] == "net.onnx"
        assert loaded.explain() == compiled.explain() and loaded._repr_html_().startswith("<iframe")
        kept = loaded(image)
        del loaded
        np.testing.assert_array_equal(kept, expected)
    bad, usage = collage.ErrorCode.BAD_MODEL, collage.ErrorCode.USAGE
    loaded = collage.load(path)
    assert refused(collage.Error, lambda: loaded(np.zeros((1, 3, 12, 13), np.float32)), "input 'image'").code == bad
    assert refused(collage.Error, lambda: loaded.save(path), "was loaded").code == usage
    assert refused(collage.Error, lambda: compiled.save(os.path.join(folder, "net.bin")), ".collage").code == usage
    assert refused(collage.Error, lambda: collage.load(path, dims={"batch": 2}), "artifact").code == usage
    assert refused(collage.Error, lambda: collage.load(os.path.join(folder, "net.onnx"), contexts=2), "contexts").code == usage
    assert refused(collage.Error, lambda: collage.load(data[:-100])).code == bad
    assert refused(collage.Error, lambda: collage.load(b"")).code == bad
    refused(collage.Error, lambda: collage.load(os.path.join(folder, "absent.collage")), "absent.collage")


def check_report(folder):
    compiled = program(folder, tiny_models.small_net())
    report = compiled.report
    assert isinstance(report, dict) and report["model"] == "net.onnx" and report["targets"] == ["reference"]
    name = report["kernels"][0]["name"]
    assert name in compiled.explain() and name in compiled.explain(name)
    assert refused(collage.Error, lambda: compiled.explain("nobody"), "nobody").code == collage.ErrorCode.USAGE
    shown = compiled._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!') and shown.count('"') == 4, shown[:200]
    page, text = os.path.join(folder, "plan.html"), os.path.join(folder, "plan.json")
    report.save(page)
    report.save(text)
    with open(page) as file:
        assert "net.onnx" in file.read()
    assert collage.Report.load(text) == report
    environment = os.environ | {"PYTHONPATH": os.path.dirname(built_package.PACKAGE)}
    told = subprocess.run([sys.executable, "-m", "collage", "diff", text, text], env=environment,
                          capture_output=True, text=True)
    assert told.returncode in (0, 3), told  # 3: nothing was timed
    broken = collage.Report(json.loads(json.dumps(report)) | {"surprise": 1})
    refused(collage.Error, broken.explain, "/surprise")


def check_operators(folder):
    """An operator that is defined here stands in models of both formats, and is checked on its own."""
    definition = """program (n, size: int64 = 2, scale: float32 = 0.5) {
        param X: float32[n];
        result Y[i:n - size + 1] = sum(k:size) X[i + k] * scale;
    }"""
    collage.define_operator("test.window", definition, onnx="com.example::Window", cases=[{"n": 5}, {"n": 9, "size": 4}])
    collage.define_operator("test.window", definition, onnx="com.example::Window", cases=[{"n": 5}, {"n": 9, "size": 4}])
    collage.check_operator("test.window", targets=["native", "reference"])
    node = onnx.helper.make_node("Window", ["x"], ["y"], "window", domain="com.example", size=3)
    model = tiny_models.model([node], {"x": [6]}, {"y": [4]})
    model.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(program(folder, model)(x), 0.5 * (x[:4] + x[1:5] + x[2:]))
    np.testing.assert_array_equal(program(folder, model, targets="native")(x), 0.5 * (x[:4] + x[1:5] + x[2:]))

    copy = "program (n) { param X: float32[n]; result Y[i:n] = X[i]; }"
    again = refused(collage.Error, lambda: collage.define_operator("test.window", copy), "operator test.window is defined already")
    wrong = refused(collage.Error, lambda: collage.define_operator("test.wrong", "program (n) { result Y[i:n] = 1.0f; }"),
                    "no parameter's shape decides n")
    assert again.code == collage.ErrorCode.USAGE and wrong.code == collage.ErrorCode.BAD_MODEL, (again, wrong)
    refused(collage.Error, lambda: collage.check_operator("test.none"), "no operator test.none was defined")


def check_types(folder):
    """The extension's stub names what the package uses."""
    assert os.path.exists(os.path.join(built_package.PACKAGE, "py.typed"))
    with open(os.path.join(built_package.PACKAGE, "_core.pyi")) as file:
        tree = ast.parse(file.read())
    classes = {node.name: {item.name for item in node.body if isinstance(item, ast.FunctionDef)} for node in tree.body
               if isinstance(node, ast.ClassDef)}
    assert classes["Program"] >= {"inputs", "outputs", "run", "run_into", "report_text", "save"} and "compile" in classes["Model"], classes
    assert {"load", "load_program", "load_program_bytes", "load_dynamic", "empty", "explain_report", "report_page", "define_operator", "check_operator"} <= {
        n.name for n in tree.body if isinstance(n, ast.FunctionDef)}


def check_command(folder):
    environment = os.environ | {"PYTHONPATH": os.path.dirname(built_package.PACKAGE)}
    told = subprocess.run([sys.executable, "-m", "collage", "--version"], env=environment, capture_output=True, text=True)
    assert told.returncode == 0 and told.stdout == f"collage {collage.__version__}\n", told
    assert subprocess.run([sys.executable, "-m", "collage", "run", "absent.onnx"], env=environment, capture_output=True).returncode == 3


def check_torch(folder):
    """A module through torch.compile gives what it gives without, also after its weights changed; gradients are PyTorch's, which is said."""
    import logging

    import torch

    from collage.torch_backend import compile_fx  # its name is known only where the package is installed

    os.environ["COLLAGE_CACHE"] = folder
    told = []
    logging.getLogger("collage.torch").addHandler(type("Keep", (logging.Handler,), {"emit": lambda self, record: told.append(record.getMessage())})())
    options = {"targets": "reference"}
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.BatchNorm1d(16)).eval()
    fast = torch.compile(model, backend=compile_fx, options=options)
    x = torch.randn(4, 8)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), model(x))
        model[0].weight.mul_(2)
        torch.testing.assert_close(fast(x), model(x))
        assert told == [], told
    fast(x).sum().backward()
    assert len(told) == 1 and "gradients" in told[0], told


def main(arguments):
    chosen = [check_results, check_measured_program, check_background_tuning, check_costs, check_memory, check_overlaps, check_refusals, check_names_as_text, check_ending_early, check_lock, check_artifacts,
              check_report, check_operators, check_types, check_command]
    return built_package.run(chosen, arguments, with_torch=[check_torch])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
