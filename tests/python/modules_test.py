"""Modules and passes in Python: text, graphs, passes of the user's between those of the package, programs of every stage.

    python tests/python/modules_test.py [CHECK...]

Takes the build that COLLAGE_BIN lies in (default build/release). Prints "N passed, 0 failed" or what went wrong.
"""

import ast
import contextlib
import io
import os
import re
import sys

import numpy as np
import onnx

import built_package
import tiny_models

if built_package.BUILT:
    import collage
    from collage import passes, rules

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(8, 16), float32]) -> Tensor[(8, 32), float32] {
  %0 = nn.dense(%x, meta[relay.Constant][0] /*Tensor[(32, 16), float32]*/);
  %1 = nn.relu(%0);
  %2 = tanh(%1);
  %3 = sigmoid(%2);
  multiply(%2, %3)
}
"""
WEIGHT = np.random.default_rng(0).standard_normal((32, 16), np.float32)
INPUT = np.random.default_rng(1).standard_normal((8, 16), np.float32)


def expected():
    t = np.tanh(np.maximum(INPUT @ WEIGHT.T, 0))
    return t / (1 + np.exp(-t))


def given():
    return collage.parse(TEXT, [WEIGHT])


def without_tanh(model):
    """A pass of the user's: tanh by sigmoid."""

    def replace(call):
        if call.op == "tanh":
            (x,) = call.arguments
            two = collage.constant(2.0)
            inner = collage.call("sigmoid", collage.call("multiply", x, two))
            return collage.call("subtract", collage.call("multiply", inner, two), collage.constant(1.0), origin=call.origin)

    return model.rewrite(replace)


def compile(folder, model, targets):
    return model.compile(targets=targets, threads=1, effort="fast", database=os.path.join(folder, "costs.db"))


def expect_right(folder, model, targets):
    np.testing.assert_allclose(compile(folder, model, targets)(INPUT), expected(), rtol=1e-4, atol=1e-5)


def refused(kind, call, words, code=None):
    try:
        call()
    except kind as wrong:
        assert str(wrong) == words, str(wrong)
        assert code is None or wrong.code == code, wrong.code
        return
    raise AssertionError(f"{kind.__name__} was not raised")


def check_two_toolchains(folder):
    """BYOC twice in one pipeline, a pass of the user's in between."""
    claim = passes.partition_for("onednn", exclude=["onednn:tanh", "onednn:sigmoid", "onednn:multiply"])
    pipeline = collage.Pipeline([claim, without_tanh, passes.partition_for("native")])
    model = pipeline(given())
    text = model.text(values=False)
    assert text.count('Compiler="onednn"') == 1 and text.count('Compiler="native"') >= 1 and "tanh(" not in text, text
    assert all("collage_" in line for line in text.partition("def @main")[2].split("{\n")[1].splitlines() if "(" in line), text
    program = compile(folder, model, "onednn,native")
    np.testing.assert_allclose(program(INPUT), expected(), rtol=1e-4, atol=1e-5)
    ran = {kernel["name"].split("_")[2]: kernel["target"] for kernel in program.report["kernels"]}
    assert ran == {"onednn": "onednn", "native": "native"}, ran
    assert collage.Pipeline([pipeline])(model).text() == model.text(), "what is claimed stays"
    kinds = {function.name: function.kind for function in model.functions}
    assert len(kinds) >= 3 and set(kinds.values()) == {"graph"} and "main" in kinds, kinds
    kernels = [call.callee for call in calls(model.function().body)]
    assert {kernel.kind for kernel in kernels} == {"global"}, kernels
    claimed = {model.function(kernel.name).attributes["Compiler"] for kernel in kernels}
    assert claimed == {"onednn", "native"}, claimed


def run_example(page, folder):
    """What the page's Python example defines and prints."""
    with open(os.path.join(built_package.ROOT, "docs", page)) as file:
        (example,) = re.findall(r"^```python\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
    names, printed = {}, io.StringIO()
    os.environ["COLLAGE_CACHE"] = folder
    with contextlib.redirect_stdout(printed):
        exec(example, names)
    return names, printed.getvalue()


def check_tutorial(folder):
    """The pass of docs/tutorial.md."""
    names, text = run_example("tutorial.md", folder)
    assert "nn.softsign(" in text and "tanh(" not in text, text
    x = np.random.default_rng(3).standard_normal((4, 64), np.float32)
    np.testing.assert_allclose(names["program"](x), np.maximum(x / (1 + np.abs(x)), 0), rtol=1e-5, atol=1e-6)


def check_page(folder):
    """The example of docs/modules.md."""
    names, text = run_example("modules.md", folder)
    assert 'Compiler="onednn"' in text and 'Compiler="native"' in text and "tanh(" not in text, text
    x, w = (np.random.default_rng(2).standard_normal(shape, np.float32) for shape in ((1, 8, 16, 16), (8, 8, 3, 3)))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    t = np.maximum(np.einsum("nihwkl,oikl->nohw", windows, w), 0)
    np.testing.assert_allclose(names["program"](x, w), t * np.tanh(t), rtol=1e-3, atol=1e-4)


def calls(expression, seen=None):
    """Every call that a value needs, those before it first."""
    seen = set() if seen is None else seen
    found = []
    for argument in expression.arguments:
        if argument not in seen:
            seen.add(argument)
            found += calls(argument, seen)
    return found + [expression] * (expression.kind == "call")


def check_text(folder):
    """What is printed parses back; by type alone with the weights that it leaves out; in a file."""
    model = given()
    text = model.text()
    assert collage.parse(text).text() == text and model.text(values=False) == TEXT
    assert "/* ty=Tensor[(8, 32), float32] */" in model.text(types=True)
    (weight,) = model.weights()
    np.testing.assert_array_equal(weight, WEIGHT)
    refused(ValueError, lambda: weight.__setitem__((0, 0), 1), "assignment destination is read-only")
    assert collage.parse(TEXT, model.weights()).text() == text
    path = os.path.join(folder, "m.relay")
    model.save(path)
    assert collage.load(path, simplify=False).text() == text
    # Text is a way to write a pass, too.
    pipeline = collage.Pipeline([lambda m: collage.parse(m.text(values=False).replace("nn.relu", "abs"), m.weights())])
    np.testing.assert_allclose(compile(folder, pipeline(model), "reference")(INPUT),
                               (t := np.tanh(np.abs(INPUT @ WEIGHT.T))) / (1 + np.exp(-t)), rtol=1e-4, atol=1e-5)


def check_graph(folder):
    """Expressions say what they are; functions are built of them."""
    main = given().function()
    (x,) = main.parameters
    assert (x.kind, x.name, x.shape, x.dtype) == ("parameter", "x", (8, 16), "float32"), x
    product = main.body
    assert product.op == "multiply" and product.arguments[0] == product.arguments[1].arguments[0]
    order = [call.op for call in calls(product)]
    assert order == ["nn.dense", "nn.relu", "tanh", "sigmoid", "multiply"], order
    dense = calls(product)[0]
    assert dense.attributes["units"] is None and dense.callee is None and dense.type == "Tensor[(8, 32), float32]", dense.attributes
    np.testing.assert_array_equal(dense.arguments[1].value, WEIGHT)
    assert repr(dense) == "<collage.Expression call nn.dense: Tensor[(8, 32), float32]>", dense
    dtypes = [collage.constant(value).dtype for value in (3, 3.0, True)]
    assert dtypes == ["int64", "float32", "bool"], dtypes

    p = collage.parameter("p", (8, 32))
    halves = collage.call("split", p, indices_or_sections=[8], axis=1)
    kernel = collage.function([p], collage.tuple_of(collage.item(halves, 1), collage.item(halves, 0)), Primitive=1, Composite="mine")
    swapped = collage.call(kernel, product)
    model = given().with_function("main", collage.function([x], swapped))
    model.verify()
    assert [info.shape for info in model.outputs] == [(8, 24), (8, 8)], model
    right, left = compile(folder, model, "native")(INPUT)
    np.testing.assert_allclose(np.concatenate([left, right], 1), expected(), rtol=1e-4, atol=1e-5)


def check_function_as_model(folder):
    """A function is a model; programs of one model for two shapes share their weights, and each is right."""
    shared, weight = collage.SharedWeights(), collage.constant(WEIGHT)
    for rows in (8, 3):
        x = collage.parameter("x", (rows, 16))
        model = collage.Model.of(collage.function([x], collage.call("nn.relu", collage.call("nn.dense", x, weight))))
        assert [info.name for info in model.inputs] == ["x"] and model.inputs[0].shape == (rows, 16)
        operations, size = model.work()
        assert operations == 2 * rows * 16 * 32 + rows * 32 and size == 4 * (rows * 16 + 16 * 32 + rows * 32), (operations, size)
        program = model.compile(targets="native", effort="fast", database=os.path.join(folder, "costs.db"), shared_weights=shared)
        np.testing.assert_allclose(program(INPUT[:rows]), np.maximum(INPUT[:rows] @ WEIGHT.T, 0), rtol=1e-4, atol=1e-5)


def check_rewriting_by_patterns(folder):
    """Matches of a pattern are replaced by what a function of its names gives."""
    pattern = "is_op('multiply')($x, is_op('sigmoid')($x)) | is_op('tanh')($y)"
    seen = []

    def replace(root, x=None, y=None):
        seen.append((root.op, x is None, y is None))
        return None if x is None else collage.call("multiply", collage.call("sigmoid", x), x)

    model = given().rewrite(replace, pattern)
    assert sorted(seen) == [("multiply", False, True), ("tanh", True, False)], seen
    expect_right(folder, model, "native")
    refused(collage.Error, lambda: given().rewrite(replace, "is_op('nn.rellu')"), "column 7: unknown operator 'nn.rellu'", collage.ErrorCode.USAGE)


def check_fusion(folder):
    """Matches of a pattern are kernels, of any toolchain or of one."""
    swish = passes.fuse_pattern("is_op('multiply')($x, is_op('sigmoid')($x))", "my.swish")
    model = collage.Pipeline([swish, passes.partition_for("onednn")])(given())
    assert model.text().count('Composite="my.swish"') == 1, model.text(values=False)
    expect_right(folder, model, "onednn,native")
    owned = passes.fuse_pattern("is_op('tanh')(*)", "my.tanh", compiler="native")(given())
    assert 'Compiler="native"' in owned.text(values=False)


def check_rules(folder):
    """Rules are objects that print as their text, and a target has the one that it is given."""
    swish = "is_op('multiply')($x, is_op('sigmoid')($x))"
    labelled = rules.composite("my.swish", swish)
    assert labelled == f"composite('my.swish', {swish})" and rules.Rule(f" composite( 'my.swish',{swish} ) ") == labelled
    assert rules.combine(rules.union(labelled, rules.kinds("broadcast", where="rank == 2")), joins=["elementwise..broadcast -> anchor"],
                         max_splits=1) == (f"combine(union({labelled}, is_op_up_to('broadcast').where(rank == 2)), "
                                           "joins: [elementwise..broadcast -> anchor], max_splits: 1)")
    assert rules.only_valid(rules.max_coalesce(rules.op("exp", "abs"), max_depth=3)) == "only_valid(max_coalesce(is_op('exp', 'abs'), max_depth: 3))"
    pair = rules.vertical(rules.horizontal(rules.own(), max_siblings=2), where="$a.op == $b.op")
    assert pair == "vertical(horizontal(own(), max_siblings: 2), where: $a.op == $b.op)"
    refused(collage.Error, lambda: rules.op("nn.rellu"), "column 7: unknown operator 'nn.rellu'", collage.ErrorCode.USAGE)
    refused(collage.Error, lambda: rules.combine("own()", max_dept=1),
            "column 16: expected one of the options joins, max_depth, max_ops, max_per_exit, max_splits, found 'max_dept'", collage.ErrorCode.USAGE)

    taken = passes.partition_for(rules.target("native", labelled))(given())
    assert taken.text().count('Composite="my.swish"') == 1 and taken.text().count('Compiler="native"') == 1, taken.text()
    for target in (f"onednn -rules={rules.union(labelled, rules.own())}", "onednn"):
        taken = passes.partition_for(target)(given())
        assert ("my.swish" in taken.text()) == ("rules" in target), taken.text()
    with open(os.path.join(folder, "mine.rules"), "w", encoding="utf-8") as file:
        file.write(f"// The same in a file, with a name.\nswish = {swish};\ncomposite('my.swish', swish)\n")
    assert "my.swish" in passes.partition_for(f"native -rules={folder}/mine.rules")(given()).text()
    expect_right(folder, given(), [rules.target("native", rules.combine(rules.union(labelled, rules.kinds("anchor"))))])


def check_properties(folder):
    """Predicates name properties of the user's own, in rules of every target and in patterns."""
    asked = []

    def is_curved(x):
        asked.append(x.op)
        return x.op in ("tanh", "sigmoid") if x.kind == "call" else None

    rules.register_property("is_curved", is_curved)
    rules.register_property("fails", lambda x: x.no_such_thing)
    rules.register_property("is_odd", lambda x: object())
    for name, words in (("is_curved", "there is a property 'is_curved' already"), ("rank", "there is a property 'rank' already"),
                        ("no name", "'no name' is no name of a property")):
        refused(collage.Error, lambda: rules.register_property(name, is_curved), words, collage.ErrorCode.USAGE)

    def kernels(target, where):
        return passes.partition_for(rules.target(target, rules.kinds("opaque", where=where)))(given()).text().count("Primitive=1")

    for target in ("native", "onednn"):
        curved, other, every = kernels(target, "is_curved"), kernels(target, "not is_curved"), kernels(target, "rank >= 0")
        assert curved == 2 and other > 0 and curved + other == every, (target, curved, other, every)
    assert "sigmoid" in asked, asked
    assert kernels("native", "fails") == kernels("native", "not fails") == kernels("native", "is_odd") == 0
    expect_right(folder, given(), [rules.target("native", rules.op("multiply", "sigmoid", where="is_curved or not is_curved"))])


def check_stated(folder):
    """A program's module compiles to the same program, and measures nothing for it."""
    program = compile(folder, passes.simplify()(given()), "onednn,native")
    module = program.module
    assert "Variant=" in module.text(values=False)
    for stage in (module, collage.parse(module.text())):
        again = stage.compile(targets="onednn,native", threads=1, database=os.path.join(folder, "costs.db"), frozen_costs=True)
        assert again.module.text(values=False) == module.text(values=False)
        np.testing.assert_array_equal(again(INPUT), program(INPUT))
    path = os.path.join(folder, "m.collage")
    program.save(path)
    refused(collage.Error, lambda: collage.load(path).module, "the program was loaded from an artifact: its kernels are compiled",
            collage.ErrorCode.USAGE)


def check_history(folder):
    """What was measured becomes the partition, and says what is left to measure."""
    model = passes.simplify()(given())
    options = {"targets": "onednn", "threads": 1, "effort": "fast", "database": os.path.join(folder, "history.db"), "always_measure": True}
    before = sum(task.unknown for task in passes.extract_tasks(model, **options))
    model.compile(**options)
    assert sum(task.unknown for task in passes.extract_tasks(model, **options)) < before
    partitioned = passes.apply_history_best(**options)(model)
    assert 'Target="onednn"' in partitioned.text(values=False)
    expect_right(folder, partitioned, "onednn")


def check_onnx(folder):
    """A model as it was imported, simplified by the pass, is what loading gives; a partitioned one is saved and loaded."""
    path = os.path.join(folder, "net.onnx")
    onnx.save(tiny_models.small_net(), path)
    raw = collage.load(path, simplify=False)
    simplified = passes.simplify()(raw)
    assert simplified.text() == collage.load(path).text()
    assert raw.inputs[0].name == simplified.inputs[0].name == "image" and simplified.outputs[0].name == "scores"
    image = np.random.default_rng(0).random((1, 3, 12, 12), np.float32)
    scores = compile(folder, simplified, "reference")(image)
    model = passes.partition_for("onednn")(simplified)
    program = compile(folder, model, "onednn")
    np.testing.assert_allclose(program(image=image), scores, rtol=1e-4, atol=1e-6)
    program.save(os.path.join(folder, "net.collage"))
    np.testing.assert_array_equal(collage.load(os.path.join(folder, "net.collage"))(image), program(image))
    assert program.report["model"] == "net.onnx"
    nodes = [onnx.helper.make_node("Sigmoid", ["x"], ["s"], "gate"), onnx.helper.make_node("Mul", ["x", "s"], ["y"], "gated")]
    onnx.save(tiny_models.model(nodes, {"x": [4]}, {"y": [4]}), path)
    raw = collage.load(path, simplify=False)
    assert [(call.op, call.origin) for call in calls(raw.function().body)] == [("sigmoid", "gate"), ("multiply", "gated")]
    assert [call.op for call in calls(passes.simplify()(raw).function().body)] == ["nn.silu"]


def check_devices(folder):
    """Device planning as passes: nodes are annotated by a rule or by name, planned, and cut into functions of each device."""
    on_cpu = [passes.annotate_devices("onednn"), passes.plan_devices("cpu:0")]
    assert collage.Pipeline(on_cpu)(given()).text() == given().text(), "everything is on the only device"
    parts = collage.Pipeline([*on_cpu, passes.partition_by_device("cpu:0", all=True)])(given())
    assert [name for name in names(parts) if name.startswith("collage_cpu_0")], names(parts)
    expect_right(folder, parts, "native")
    path = os.path.join(folder, "net.onnx")
    onnx.save(tiny_models.small_net(), path)
    both = "cpu:0, big=gpu:1"
    planned = collage.Pipeline([passes.annotate_devices(nodes="soft.*=big"), passes.plan_devices(both)])(collage.load(path))
    assert planned.text(values=False).count('device_copy(') == 1, planned.text(values=False)
    cut = passes.partition_by_device(both)(planned)
    assert len(names(cut)) == 2 and min(names(cut)).startswith("collage_gpu_1_"), names(cut)
    refused(collage.Error, lambda: passes.plan_devices("cpu:0, cpu:0")(planned), "device 'cpu:0' is declared twice")
    refused(collage.Error, lambda: passes.annotate_devices(nodes="nowhere=gpu")(planned), "'nowhere=gpu' matches no node")


def names(model):
    return [function.name for function in model.functions]


def check_broken_passes(folder):
    """An error names the pass that broke the module, or that failed."""
    loose = collage.call("nn.relu", collage.parameter("y", (4,)))
    usage, bad = collage.ErrorCode.USAGE, collage.ErrorCode.BAD_MODEL

    def unbound(model):
        return model.with_function("main", collage.function([], loose))

    def other_type(model):
        return model.rewrite(lambda call: collage.constant(1.0) if call.op == "nn.relu" else None)

    def no_model(model):
        return model.text()

    def raises(model):
        return model.rewrite(lambda call: 1 / 0)

    run = lambda *steps: lambda: collage.Pipeline(steps)(given())
    rule = "rule 'variable is bound': variable %y is no parameter of its function"
    refused(collage.Error, run(passes.standard("simplify"), unbound), f"module after pass unbound: @main: node: {rule}", bad)
    refused(collage.Error, run(other_type),
            "pass other_type: @main: a call of nn.relu: its replacement is a float32, not a Tensor[(8, 32), float32]", bad)
    refused(TypeError, run(no_model), "pass no_model: gave str, not a collage.Model")
    refused(ZeroDivisionError, run(raises), "division by zero")
    refused(TypeError, run(lambda model: model.rewrite(lambda call: 3)), "rewrite: expected a collage.Expression or None, got int")
    refused(TypeError, lambda: collage.Pipeline(["simplify"]), "a pass is a function from a model to a model, not str")
    refused(collage.Error, run(passes.standard("simplfy")),
            f"pass simplfy: there is no standard pass of that name; they are {', '.join(passes.standard_names())}", usage)
    refused(collage.Error, run(passes.partition_for("onednn,native")),
            "pass partition_for(onednn, native): one toolchain a pass, not several: onednn, native", usage)
    refused(collage.Error, run(passes.fuse_pattern("is_op('nn.rellu')(*)", "a")),
            "pass fuse_pattern(a): column 7: unknown operator 'nn.rellu'", usage)
    refused(collage.Error, lambda: unbound(given()).compile(targets="reference"), f"@main: node: {rule}", bad)


def check_misuse(folder):
    """What is given is told where it does not fit."""
    usage, bad, unsupported = (collage.ErrorCode[name] for name in ("USAGE", "BAD_MODEL", "UNSUPPORTED"))
    x = collage.parameter("x", (4,))
    refused(collage.Error, lambda: collage.call("nn.rellu", x), "unknown operator 'nn.rellu'", unsupported)
    refused(collage.Error, lambda: collage.call("nn.softmax", x, axes=0), "nn.softmax: unknown attribute 'axes'", bad)
    refused(collage.Error, lambda: collage.call("add", x, collage.parameter("y", (5,))), "add: shapes (4) and (5) do not broadcast", bad)
    refused(TypeError, lambda: collage.call("nn.softmax", x, axis=object()),
            "attribute 'axis': None, a number, a text, or a list of numbers or of lists of whole numbers, not object")
    refused(collage.Error, lambda: collage.call(x, x), "what is called is no function but a Tensor[(4), float32]", bad)
    refused(collage.Error, lambda: collage.call(collage.function([x], x), x, axis=1), "a call of a function has no attributes: axis", usage)
    refused(collage.Error, lambda: collage.function([x, x], x), "the parameter %x stands there twice", bad)
    refused(collage.Error, lambda: collage.tuple_of(x, x).shape, "a (Tensor[(4), float32], Tensor[(4), float32]) is no tensor", usage)
    refused(TypeError, lambda: collage.constant("text"), "constant: expected an array in CPU memory of numbers or booleans, got str")
    refused(collage.Error, lambda: collage.parse("def @main() { nn.rellu(1f) }"), "line 1, column 15: unknown operator 'nn.rellu'", unsupported)
    refused(collage.Error, lambda: collage.parse(TEXT), "line 3, column 21: constant 0 is given by its type only, Tensor[(32, 16), float32], "
            "and nothing supplies it", bad)
    text = "def @main(%x: Tensor[(1 é), float32]) { %x }"
    refused(collage.Error, lambda: collage.parse(text), "line 1, column 25: expected ')', found 'é'", bad)
    path = os.path.join(folder, "latin.relay")
    with open(path, "w", encoding="latin-1") as file:
        file.write(text)
    refused(collage.Error, lambda: collage.load(path), f"{path}: line 1, column 25: expected ')', found '\ufffd'", bad)
    refused(collage.Error, lambda: given().function("none"), "the module has no graph function @none", usage)
    refused(collage.Error, lambda: given().save(os.path.join(folder, "m.txt")), f"{folder}/m.txt: a module's name ends in .relay", usage)
    assert collage.constant(True).dtype == "bool" and collage.constant(3).dtype == "int64" and collage.constant(3, "int32").dtype == "int32"


def check_script(folder):
    """Models as script: printed, read from text and from a file, and compiled."""
    model = given()
    text = model.script()
    assert text.startswith("@ir_module\n") and "R.nn.dense(x, w0)" in text, text
    assert collage.parse(text).text() == model.text(), text
    assert collage.parse(model.script(values=False), [WEIGHT]).text() == model.text()
    assert "lv0: R.Tensor((8, 32), \"float32\") = " in model.script(types=True)
    path = os.path.join(folder, "m.script")
    with open(path, "w") as file:
        file.write(text)
    expect_right(folder, collage.load(path), "native")
    refused(collage.Error, lambda: collage.parse("@ir_module\nclass M:\n    n = 4\n"), "line 3, column 9: expected R.extern, found '4'",
            collage.ErrorCode.BAD_MODEL)


def check_types(folder):
    """The extension's stub names what the package uses."""
    with open(os.path.join(built_package.PACKAGE, "_core.pyi")) as file:
        tree = ast.parse(file.read())
    classes = {node.name: {item.name for item in node.body if isinstance(item, ast.FunctionDef)} for node in tree.body
               if isinstance(node, ast.ClassDef)}
    assert classes["Model"] >= {"text", "weights", "save", "verify", "functions", "function", "with_function", "rewrite"}, classes
    assert classes["Expression"] >= {"op", "attributes", "arguments", "type", "origin", "value", "body", "parameters"}, classes
    assert {"call", "call_function", "constant", "function", "parse", "partition_for", "fuse_pattern", "rule_text", "simplify"} <= {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def main(arguments):
    chosen = [check_two_toolchains, check_page, check_tutorial, check_text, check_graph, check_function_as_model, check_rewriting_by_patterns, check_fusion, check_rules, check_properties, check_stated, check_history, check_onnx,
              check_devices, check_broken_passes, check_misuse, check_script, check_types]
    return built_package.run(chosen, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
