"""Functions in Python that models call by label: from modules, tensor programs and ONNX nodes, with one result and with several.

    python tests/python/functions_test.py [CHECK...]

Takes the build that COLLAGE_BIN lies in (default build/release). Prints "N passed, 0 failed" or what went wrong.
"""

import concurrent.futures
import ctypes
import os
import sys

import numpy as np
import onnx
from onnx import helper

import built_package
import tiny_models

if built_package.BUILT:
    import collage


def written(folder, text, name="model.relay"):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write('#[version = "0.0.5"]\n' + text)
    return path


def compiled(folder, path, **options):
    return collage.load(path).compile(**({"database": os.path.join(folder, "costs.db"), "effort": "fast"} | options))


def raised(call, *words):
    try:
        call()
    except collage.Error as wrong:
        assert all(word in str(wrong) for word in words) and "\n" not in str(wrong), wrong
        return wrong
    raise AssertionError("nothing was raised")


def targets_of(program):
    return {op["op"]: kernel["target"] for kernel in program.report["kernels"] for op in kernel["ops"]}


X = np.random.default_rng(0).standard_normal((8, 100)).astype(np.float32)


def check_one_result(folder):
    """Called by a kernel of native between its own, over the program's memory; nothing of it is measured, nothing kept."""
    seen = []

    def cumulated(x, out):
        seen.append((x.flags.writeable, out.flags.writeable, x.ctypes.data % 64, out.ctypes.data % 64))
        np.cumsum(x, axis=-1, out=out)

    collage.register_function("one.cumulated", cumulated, type=lambda x: x)
    path = written(folder, """extern @cumulated(Tensor[(8, 100), float32]) = "one.cumulated";
def @main(%x: Tensor[(8, 100), float32]) {
  tanh(@cumulated(exp(%x)))
}
""")
    expected = np.tanh(np.cumsum(np.exp(X), axis=-1))
    for chosen in ({}, {"targets": "native"}, {"targets": "reference"}, {"targets": "native,onednn", "effort": "default"}):
        program = compiled(folder, path, **chosen)
        seen.clear()
        np.testing.assert_allclose(program(X), expected, rtol=1e-4, atol=1e-5)
        assert seen == [(False, True, 0, 0)], (chosen, seen)
    assert targets_of(compiled(folder, path, targets="native"))["cumulated"] == "native"
    raised(lambda: program.save(os.path.join(folder, "model.collage")), "calls another library")
    collage.load(path).compile(targets="reference", frozen_costs=True, database=os.path.join(folder, "empty.db"))


def check_stage(folder):
    """A stage of a tensor program calls one; so does a user's operator, which gives it extents and ONNX nodes with attributes."""
    collage.register_function("stage.reversed", lambda x, out: np.copyto(out, x[:, ::-1]), type=lambda x: x)
    path = written(folder, """program @scaled {
  param A: float32[8, 100];
  stage R[i:8, j:100] = extern "stage.reversed"(A): float32;
  result C[i:8, j:100] = R[i, j] * 2.0f;
}
def @main(%x: Tensor[(8, 100), float32]) {
  @scaled(%x)
}
""")
    np.testing.assert_array_equal(compiled(folder, path)(X), X[:, ::-1] * 2)
    collage.define_operator("stage.flipped", onnx="com.example::Flipped", program="""program (n, d, scale: float32 = 1.0) {
      param X: float32[n, d];
      stage R[i:n, j:d] = extern "stage.reversed"(X): float32;
      result Y[i:n, j:d] = R[i, j] * scale;
    }""")
    node = helper.make_node("Flipped", ["x"], ["y"], "flipped", domain="com.example", scale=0.5)
    model = tiny_models.model([node], {"x": [8, 100]}, {"y": [8, 100]})
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    onnx.save(model, os.path.join(folder, "flipped.onnx"))
    np.testing.assert_allclose(compiled(folder, os.path.join(folder, "flipped.onnx"))(X), X[:, ::-1] / 2)


def check_several_results(folder):
    """Of any dtypes; from a module and as an ONNX node, whose outputs others read."""
    def best(x, values, places):
        places[...] = np.argsort(-x, axis=-1, kind="stable")[:, :3]
        values[...] = np.take_along_axis(x, places, axis=-1)

    rows = lambda x, dtype: collage.ArrayType((x.shape[0], 3), dtype)
    collage.register_function("several.best", best, type=lambda x: [rows(x, x.dtype), rows(x, "int64")], onnx="com.example::Best")
    path = written(folder, """extern @best(Tensor[(8, 100), float32]) = "several.best";
def @main(%x: Tensor[(8, 100), float32]) {
  %0 = @best(negative(%x));
  (exp(%0.0), %0.1)
}
""")
    places = np.argsort(X, axis=-1, kind="stable")[:, :3]
    for options in ({}, {"targets": "native"}, {"targets": "native", "effort": "max"}):
        values, found = compiled(folder, path, **options)(X)
        np.testing.assert_array_equal(found, places)
        np.testing.assert_allclose(values, np.exp(-np.take_along_axis(X, places, axis=-1)), rtol=1e-5)

    nodes = [helper.make_node("Neg", ["x"], ["a"], "negated"), helper.make_node("Best", ["a"], ["v", "i"], "best", domain="com.example"),
             helper.make_node("Exp", ["v"], ["y"], "exp")]
    model = tiny_models.model(nodes, {"x": [8, 100]}, {"y": [8, 3]})
    model.graph.output.append(helper.make_tensor_value_info("i", onnx.TensorProto.INT64, [8, 3]))
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    onnx.save(model, os.path.join(folder, "best.onnx"))
    outputs = compiled(folder, os.path.join(folder, "best.onnx")).run({"x": X})
    np.testing.assert_array_equal(outputs["i"], places)
    np.testing.assert_allclose(outputs["y"], values, rtol=1e-6)
    # Saved, it runs where somebody registered the label.
    program = compiled(folder, path, targets="reference")
    program.save(os.path.join(folder, "best.collage"))
    np.testing.assert_array_equal(collage.load(os.path.join(folder, "best.collage"))(X)[1], places)


def check_updates(folder):
    """Graphs see a new value, whoever else reads the old one."""
    def add_ones(given, x):
        assert given.ctypes.data == x.ctypes.data and given.flags.writeable
        x += 1

    collage.register_function("update.ones", add_ones, type=lambda x: x, updates=0)
    path = written(folder, """extern @ones(Tensor[(8, 100), float32]) = "update.ones";
def @main(%x: Tensor[(8, 100), float32]) {
  %0 = exp(%x);
  (@ones(%0), %0)
}
""")
    for targets in ("native", "reference"):
        updated, old = compiled(folder, path, targets=targets)(X)
        np.testing.assert_allclose(old, np.exp(X), rtol=1e-5)
        np.testing.assert_allclose(updated, old + 1, rtol=1e-6)


    def accumulate(x, total, new_total, sums):
        assert total.ctypes.data == new_total.ctypes.data
        total += x
        sums[...] = total.sum(axis=-1)

    rows = lambda x: collage.ArrayType((x.shape[0],), x.dtype)
    collage.register_function("update.accumulate", accumulate, type=lambda x, total: [total, rows(x)], updates=[1])
    path = written(folder, """extern @accumulate(Tensor[(8, 100), float32], Tensor[(8, 100), float32], updates=[1])
  -> (Tensor[(8, 100), float32], Tensor[(8), float32]) = "update.accumulate";
def @main(%x: Tensor[(8, 100), float32]) {
  %0 = @accumulate(%x, exp(%x));
  %1 = @accumulate(%x, %0.0);
  (%1.0, %0.1, %1.1)
}
""")
    once = X + np.exp(X)
    for targets in ("native", "reference"):
        for result, expected in zip(compiled(folder, path, targets=targets)(X), (once + X, once.sum(-1), (once + X).sum(-1))):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def check_attributes(folder):
    """Calls state what they want otherwise than by default; so do nodes of ONNX."""
    def shifted(x, out, by, axis, text, factors):
        assert axis == -1 and text == "a" and isinstance(by, float), (by, axis, text)
        np.multiply(np.roll(x, 1, axis), by, out=out)
        out *= np.prod(factors)

    collage.register_function("attributes.shifted", shifted, type=lambda x, by, axis, text, factors: x, onnx="com.example::Shifted",
                              attributes={"by": 2.0, "axis": -1, "text": "a", "factors": [0.5, 4.0]})
    text = """extern @shifted(Tensor[(8, 100), float32], by=3) = "attributes.shifted";
extern @plain(Tensor[(8, 100), float32]) = "attributes.shifted";
def @main(%x: Tensor[(8, 100), float32]) {
  @plain(@shifted(%x))
}
"""
    path = written(folder, text)
    program = compiled(folder, path)
    np.testing.assert_allclose(program(X), np.roll(X, 2, -1) * 3 * 2 * 2 * 2, rtol=1e-6)
    assert "by=3" in program.module.text(), program.module.text()
    raised(lambda: collage.load(written(folder, text.replace("by=3", "bye=3"))), "attributes.shifted", "unknown attribute 'bye'")
    collage.register_node("com.example::AlsoShifted", "attributes.shifted")
    raised(lambda: collage.register_node("com.example::Shifted", "one.other"), "there is no external function 'one.other'")
    for op, attributes, words in (("Shifted", {"by": 0.25}, ()), ("AlsoShifted", {"by": 0.25}, ()), ("Shifted", {"other": 1}, ("does not declare",)),
                                  ("Shifted", {"by": "x"}, ("by",))):
        node = helper.make_node(op, ["x"], ["y"], "shifted", domain="com.example", **attributes)
        model = tiny_models.model([node], {"x": [8, 100]}, {"y": [8, 100]})
        model.opset_import.append(helper.make_opsetid("com.example", 1))
        onnx.save(model, os.path.join(folder, "shifted.onnx"))
        if words:
            raised(lambda: collage.load(os.path.join(folder, "shifted.onnx")), *words)
        else:
            np.testing.assert_allclose(compiled(folder, os.path.join(folder, "shifted.onnx"))(X), np.roll(X, 1, -1) * 0.5, rtol=1e-6)


def check_effects(folder):
    """Called once a run, in the order of the text, whatever reads the results; never before, so compiling tries and times nothing."""
    seen = []
    collage.register_function("effects.say", lambda x, word: seen.append((word, float(x[0, 0]))), type=lambda x, word: [], effects=True,
                              attributes={"word": ""})

    def count(x, out):
        seen.append("count")
        out[...] = len(seen)

    collage.register_function("effects.count", count, type=lambda x: x, effects=True)
    matrix = "Tensor[(8, 100), float32]"
    text = f"""extern @first({matrix}, word="first") = "effects.say";
extern @second({matrix}, word="second") = "effects.say";
extern @count({matrix}) = "effects.count";
def @main(%x: {matrix}) {{
  %0 = @second(tanh(exp(%x)));
  %1 = @count(%x);
  %2 = @first(%x);
  %3 = @count(%x);
  %4 = @first(%1);
  (add(%x, 1f), subtract(%3, %1))
}}
"""
    expected = [("second", float(np.tanh(np.exp(X[0, 0])))), "count", ("first", float(X[0, 0])), "count", ("first", 2.0)]
    path = written(folder, text)

    def runs(program):
        for run in range(2):
            assert not seen, seen
            plus, difference = program(X)
            np.testing.assert_allclose([value for step in seen for value in step[1:] if step != "count"],
                                       [value for step in expected for value in step[1:] if step != "count"], rtol=1e-5)
            assert [step[0] for step in seen] == [step[0] for step in expected], seen
            np.testing.assert_allclose(plus, X + 1, rtol=1e-6)
            np.testing.assert_array_equal(difference, np.full_like(X, 2))
            seen.clear()

    for options in ({}, {"targets": "native"}, {"targets": "reference"}, {"targets": "native,onednn", "effort": "default"}):
        program = compiled(folder, path, **options)
        runs(program)
        runs(program.module.compile(database=os.path.join(folder, "costs.db"), targets=options.get("targets", "native,onednn")))
    program = compiled(folder, path, targets="native")
    program.save(os.path.join(folder, "effects.collage"))
    assert not seen, seen
    runs(collage.load(os.path.join(folder, "effects.collage")))
    script = collage.load(path, simplify=False).script()
    assert "effects=True" in script and 'word="first"' in script, script
    runs(collage.parse(script).compile(database=os.path.join(folder, "costs.db"), effort="fast"))
    raised(lambda: collage.register_function("effects.node", count, type=lambda x: x, effects=True, onnx="com.example::Node"), "effects")


def check_wrong(folder):
    """What a function raises, and what it gives wrongly, is an error with its message, wherever it is called."""
    allowed = [True]

    def moody(x, out):
        if not allowed[0]:
            raise ValueError("not today")
        out[...] = x

    collage.register_function("wrong.moody", moody, type=lambda x: x)
    text = """extern @moody(Tensor[(8, 100), float32]) = "wrong.moody";
def @main(%x: Tensor[(8, 100), float32]) {
  @moody(%x)
}
"""
    path = written(folder, text)
    for targets in ("native", "reference"):
        allowed[0] = True
        program = compiled(folder, path, targets=targets)
        allowed[0] = False
        raised(lambda: program(X), "wrong.moody", "ValueError: not today")
        allowed[0] = True
        np.testing.assert_array_equal(program(X), X)

    def load_with(label, function, type):
        collage.register_function(label, function, type=type)
        return collage.load(written(folder, text.replace("wrong.moody", label)))

    def no_type(x):
        raise KeyError("dtype")

    raised(lambda: load_with("wrong.raises", moody, no_type), "KeyError")
    raised(lambda: load_with("wrong.none", moody, lambda x: None), "wrong.none")
    raised(lambda: load_with("wrong.dtype", moody, lambda x: (x.shape, "float31")), "float31")
    raised(lambda: load_with("wrong.empty", moody, lambda x: []), "wrong.empty gives nothing")
    raised(lambda: load_with("wrong.negative", moody, lambda x: ((-1,), x.dtype)), "wrong.negative")
    load_with("wrong.returns", lambda x, out: x + 1, lambda x: x)
    raised(lambda: compiled(folder, path, targets="reference")(X), "wrong.returns", "returned a", "last arguments")
    usage = collage.ErrorCode.USAGE
    assert raised(lambda: collage.register_function("wrong.moody", moody, type=lambda x: x), "taken").code == usage
    assert raised(lambda: collage.register_function("a label", moody, type=lambda x: x), "a label").code == usage
    raised(lambda: collage.load(written(folder, text.replace("wrong.moody", "wrong.nobody"))), "wrong.nobody")


def check_threads(folder):
    """Runs on several threads, of contexts of one program, call it by turns of the interpreter."""
    collage.register_function("threads.twice", lambda x, out: np.multiply(x, 2, out=out), type=lambda x: [x, x][:1])
    collage.register_function("threads.pair", lambda x, a, b: (np.copyto(a, x), np.copyto(b, x)) and None, type=lambda x: [x, x])
    path = written(folder, """extern @pair(Tensor[(8, 100), float32]) = "threads.pair";
def @main(%x: Tensor[(8, 100), float32]) {
  %0 = @pair(exp(%x));
  add(%0.0, %0.1)
}
""")
    compiled(folder, path, threads=1, targets="reference").save(os.path.join(folder, "pair.collage"))
    program = collage.load(os.path.join(folder, "pair.collage"), contexts=4)
    inputs = [X * factor for factor in np.linspace(0, 1, 64, dtype=np.float32)]
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        for x, y in zip(inputs, threads.map(program, inputs)):
            np.testing.assert_allclose(y, 2 * np.exp(x), rtol=1e-5)


def check_no_torch(folder):
    """A label of PyTorch says what to install."""
    path = written(folder, """extern @erf(Tensor[(8, 100), float32]) = "torch.erf";
def @main(%x: Tensor[(8, 100), float32]) {
  @erf(%x)
}
""")
    kept = sys.modules.get("torch")
    sys.modules["torch"] = None  # as where it is not installed
    try:
        wrong = raised(lambda: collage.load(path), "line 2, column 42: torch.erf: it needs PyTorch: pip install torch")
        assert wrong.code == collage.ErrorCode.UNAVAILABLE, wrong.code
    finally:
        sys.modules["torch"] = kept
        if kept is None:
            del sys.modules["torch"]


def check_torch(folder):
    import torch

    def softmax(x, out):
        assert isinstance(x, torch.Tensor) and isinstance(out, torch.Tensor)
        torch.softmax(x, -1, out=out)

    collage.register_function("torch.softmax", softmax, type=lambda x: x, arrays="torch")
    path = written(folder, """extern @softmax(Tensor[(8, 100), float32]) = "torch.softmax";
def @main(%x: Tensor[(8, 100), float32]) {
  @softmax(exp(%x))
}
""")
    np.testing.assert_allclose(compiled(folder, path)(X), torch.softmax(torch.exp(torch.from_numpy(X)), -1).numpy(), rtol=1e-4)


def main(arguments):
    chosen = [check_one_result, check_stage, check_several_results, check_updates, check_attributes, check_effects, check_wrong, check_threads, check_no_torch]
    return built_package.run(chosen, arguments, with_torch=[check_torch])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
