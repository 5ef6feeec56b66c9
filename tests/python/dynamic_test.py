"""Programs of models whose shapes a run decides, against ONNX Runtime: dimensions padded to buckets, a decoder that keeps its cache, loops and
conditions whose bodies are compiled.

    python tests/python/dynamic_test.py [CHECK...]

Takes the build that COLLAGE_BIN lies in (default build/release). Prints "N passed, 0 failed" or what went wrong.
"""

import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import built_package
import generate

if built_package.BUILT:
    import collage


def loaded(folder, path, **options):
    """With one toolchain, for which nothing is measured."""
    return collage.load_dynamic(path, targets="onednn", database=os.path.join(folder, "costs.db"), **options)


def model(folder, name):
    path, _ = generate.generate(name, folder, small=True)
    return path, onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def agree(actual, expected):
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-4 * max(1e-30, float(np.abs(expected).max())))


def check_buckets(folder):
    """A BERT with a mask: two sizes of batch and two of length serve all; imported in stages, and as one module."""
    path, session = model(folder, "bert_dynamic")
    for source in (path, collage.load_symbolic(path)):
        serves_by_buckets(folder, path, source, session)


def serves_by_buckets(folder, path, source, session):
    program = loaded(folder, source, buckets={"batch": [1, 4], "sequence": [8, 24]})
    random = np.random.default_rng(3)
    for batch, length in ((1, 8), (1, 5), (3, 24), (4, 2), (1, 17), (2, 9)):
        given = {}
        for value in session.get_inputs():
            shape = [{"batch": batch, "sequence": length}[dim] for dim in value.shape]
            given[value.name] = (np.ones(shape, np.int64) if "mask" in value.name
                                 else random.integers(0, 2, shape) if "type" in value.name else random.integers(0, 100, shape))
        expected = session.run(None, given)
        for name, output in zip((value.name for value in session.get_outputs()), expected):
            agree(program.run(given)[name], output)
    compiled = [made for made in program.specialisations if not made.interpreted]
    assert len(compiled) == 4, [made.shapes for made in compiled]
    saved = os.path.join(folder, "bert.collage")
    program.save(saved)
    again = collage.load(saved)
    assert len(again.specialisations) == 4, again.specialisations
    assert os.path.getsize(saved) < 1.5 * os.path.getsize(path), "the weights are there more than once"
    for name, output in program.run(given).items():
        assert again.run(given)[name].tobytes() == output.tobytes(), name


def check_states(folder):
    """A GPT-2 that keeps its cache: a prompt, then token after token, through two buckets; imported in stages, and as one module."""
    path, session = model(folder, "gpt2_cache")
    for source in (path, collage.load_symbolic(path)):
        keeps_its_cache(folder, source, session)


def keeps_its_cache(folder, source, session):
    cache = {value.name: np.zeros((1, value.shape[1], 0, value.shape[3]), np.float32)
             for value in session.get_inputs() if value.name.startswith("past")}
    names = [value.name for value in session.get_outputs()]
    present = {name: name.replace("past_key_values", "present") for name in cache}
    program = loaded(folder, source, buckets={"past": [12, 28]}, states=present)
    assert not any(info.name in cache for info in program.inputs)
    tokens, past = np.arange(7, dtype=np.int64)[None] * 3, 0
    for _ in range(12):
        length = tokens.shape[1]
        given = {"input_ids": tokens, "attention_mask": np.ones((1, past + length), np.int64),
                 "position_ids": np.arange(past, past + length, dtype=np.int64)[None]}
        given = {info.name: given[info.name] for info in program.inputs}
        expected = dict(zip(names, session.run(None, given | cache)))
        agree(program.run(given)["logits"], expected["logits"])
        cache = {name: expected[present[name]] for name in cache}
        past += length
        tokens = expected["logits"][:, -1:].argmax(axis=-1)
    compiled = [made for made in program.specialisations if not made.interpreted]
    assert len(compiled) == 3, [made.shapes for made in compiled]
    saved = os.path.join(folder, "gpt2.collage")
    program.save(saved)
    first = collage.load(saved)
    other, prompt = first.beside(), {"input_ids": np.arange(7, dtype=np.int64)[None] * 3, "attention_mask": np.ones((1, 7), np.int64),
                                     "position_ids": np.arange(7, dtype=np.int64)[None]}
    prompt = {info.name: prompt[info.name] for info in first.inputs}
    program.reset()
    expected = program.run(prompt)["logits"]
    for sequence in (first, other):  # each has a cache of its own
        assert sequence.run(prompt)["logits"].tobytes() == expected.tobytes()
    program.reset()
    given = {"input_ids": np.ones((1, 7), np.int64), "attention_mask": np.ones((1, 7), np.int64),
             "position_ids": np.arange(7, dtype=np.int64)[None]}
    given = {info.name: given[info.name] for info in program.inputs}
    program.run(given)


def check_loop(folder):
    """A loop whose body is worth compiling, until a norm is small, with a condition inside."""
    weights = np.random.default_rng(1).standard_normal((256, 256)).astype(np.float32) / 40
    value = lambda name, kind, shape: helper.make_tensor_value_info(name, kind, shape)
    branch = lambda op, name: helper.make_graph([helper.make_node(op, ["product"], [name])], name, [], [value(name, TensorProto.FLOAT, None)])
    body = helper.make_graph(
        [helper.make_node("MatMul", ["v", "weights"], ["product"]),
         helper.make_node("ReduceMax", ["product"], ["largest"], keepdims=0),
         helper.make_node("Greater", ["largest", "one"], ["large"]),
         helper.make_node("If", ["large"], ["next"], then_branch=branch("Tanh", "a"), else_branch=branch("Relu", "b")),
         helper.make_node("ReduceL1", ["next"], ["sum"], keepdims=0),
         helper.make_node("Greater", ["sum", "limit"], ["again"])],
        "body", [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("v", TensorProto.FLOAT, ["rows", 256])],
        [value("again", TensorProto.BOOL, []), value("next", TensorProto.FLOAT, ["rows", 256]), value("sum", TensorProto.FLOAT, [])])
    graph = helper.make_graph([helper.make_node("Loop", ["", "", "x"], ["y", "sums"], body=body)], "whole",
                              [value("x", TensorProto.FLOAT, ["rows", 256])],
                              [value("y", TensorProto.FLOAT, ["rows", 256]), value("sums", TensorProto.FLOAT, ["steps"])],
                              [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(np.float32(1), "one"),
                               numpy_helper.from_array(np.float32(50), "limit")])
    path = os.path.join(folder, "loop.onnx")
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    onnx.save(made, path)
    session = onnxruntime.InferenceSession(path)
    program = loaded(folder, path)
    steps = set()
    for rows, scale in ((64, 1), (64, 9), (32, 3)):
        x = scale * np.random.default_rng(rows).standard_normal((rows, 256)).astype(np.float32)
        expected = session.run(None, {"x": x})
        for actual, wanted in zip(program(x), expected):
            agree(actual, wanted)
        steps.add(len(expected[1]))
    assert len(steps) > 1 and any(not made.interpreted for made in program.specialisations)


def check_refusals(folder):
    path, _ = model(folder, "bert_dynamic")
    program = loaded(folder, path, compile_on_demand=False)
    given = {info.name: np.ones((1, 8), np.int64) for info in program.inputs}
    try:
        program.run(given)
        raise AssertionError("compiled on demand")
    except collage.Error as wrong:
        assert wrong.code == collage.ErrorCode.UNAVAILABLE and "compiling on demand is off" in str(wrong), wrong
    program.prepare(given)
    program.run(given)
    for wrong_inputs, told in (({name: array[:, :4] if "mask" in name else array for name, array in given.items()}, "is not 'sequence'"),
                               ({name: array.astype(np.float32) for name, array in given.items()}, "expected int64")):
        try:
            program.run(wrong_inputs)
            raise AssertionError("was not refused")
        except collage.Error as wrong:
            assert told in str(wrong), wrong


def check_care(folder):
    """The first shapes, prepared ones and those of buckets are measured; others are compiled as they are known, or without measuring."""
    path = os.path.join(folder, "product.onnx")
    weight = np.random.default_rng(7).standard_normal((256, 256), np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["product"]), helper.make_node("Relu", ["product"], ["y"])]
    graph = helper.make_graph(nodes, "product", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 256])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 256])], [numpy_helper.from_array(weight, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    def quick_ones(*steps, targets="onednn,blas", **options):
        """The numbers of rows, prepared where they are negative; and which are compiled without measuring."""
        program = collage.load_dynamic(path, targets=targets, effort="fast", database=os.path.join(folder, "care.db"), **options)
        for rows in steps:
            given = {"x": np.random.default_rng(5).standard_normal((abs(rows), 256), np.float32)}
            if rows < 0:
                program.prepare(given)
            agree(program.run(given)["y"], session.run(None, given)[0])
        return [made.quick for made in program.specialisations if not made.interpreted]

    assert quick_ones(16, 24, -32, 24) == [False, True, False]
    assert quick_ones(24, 32, 40) == [False, False, True], "32 is known"
    assert quick_ones(1, 48, 56) == [False, True], "nothing was compiled for one row"
    assert quick_ones(9, 33, buckets={"rows": [16, 64]}) == [False, False]
    assert quick_ones(72, 80, targets="onednn") == [False, False], "nothing is measured anyway"
    # Prepared after it was compiled without measuring: compiled again.
    assert quick_ones(16, 88, 16, -88) == [False, False]


def check_symbolic(folder):
    """Kernels whose code serves all shapes: new ones compile none, for targets 'native -symbolic=only'."""
    path = os.path.join(folder, "rows.onnx")
    nodes = [helper.make_node("Softmax", ["x"], ["weights"], axis=-1), helper.make_node("Mul", ["weights", "x"], ["weighted"]),
             helper.make_node("LayerNormalization", ["weighted", "scale"], ["y"], axis=-1)]
    graph = helper.make_graph(nodes, "rows", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "rows", 512])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.linspace(0.5, 2, 512, dtype=np.float32), "scale")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    cache = os.path.join(folder, "symbolic")
    before, os.environ["COLLAGE_CACHE"] = os.environ.get("COLLAGE_CACHE"), cache
    try:
        program = collage.load_dynamic(path, targets="native -symbolic=only", database=os.path.join(folder, "symbolic.db"))
        random, compiled = np.random.default_rng(5), []
        for batch, rows in ((2, 200), (3, 199), (1, 640), (7, 101), (2, 257)):
            given = random.standard_normal((batch, rows, 512), np.float32)
            agree(program.run({"x": given})["y"], session.run(None, {"x": given})[0])
            # By this process and those that try kernels for it.
            compiled.append(sum(name.startswith("native-") for name in os.listdir(os.path.join(cache, "kernels"))))
        assert compiled[0] > 0 and len(set(compiled)) == 1, compiled
        assert not any(made.interpreted for made in program.specialisations)
    finally:
        del os.environ["COLLAGE_CACHE"]
        if before is not None:
            os.environ["COLLAGE_CACHE"] = before


def check_text_over_symbols(folder):
    """A module of text with symbols: one program for all sizes, whose file the runtime loads; models of one size."""
    path = os.path.join(folder, "family.relay")
    with open(path, "w", encoding="utf-8") as file:
        file.write("""def @main(%x: Tensor[(n, 8), float32], %w: Tensor[(m, 8), float32]) {
          %0 = nn.dense(%x, %w);
          reshape(exp(%0), newshape=[n * m])
        }""")
    expected = lambda x, w: np.exp(x @ w.T).reshape(-1)
    random = np.random.default_rng(7)
    sizes = [(300, 40), (5, 3), (300, 40)]
    given = [(0.1 * random.standard_normal((n, 8), np.float32), random.standard_normal((m, 8), np.float32)) for n, m in sizes]
    program = loaded(folder, path)
    assert [value.dims for value in program.inputs] == [["n", "8"], ["m", "8"]], program.inputs
    assert [value.dims for value in program.outputs] == [["n * m"]], program.outputs
    for x, w in given:
        agree(program(x, w), expected(x, w))
    assert len(program.specialisations) == 2, program.specialisations
    saved = os.path.join(folder, "family.collage")
    program.save(saved)
    for x, w in given:
        np.testing.assert_array_equal(collage.load(saved)(x, w), program(x, w))
    model = collage.load(path, dims={"n": 5, "m": 3})
    agree(model.compile(targets="native")(*given[1]), expected(*given[1]))
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert "newshape=[15]" in collage.parse(text, dims={"n": 5, "m": 3}).text()
    for wrong, message in ((lambda: collage.load(path), "symbol n has no value"), (lambda: collage.parse(text, dims={"n": 1}), "symbol m has no value"),
                           (lambda: program(given[0][0], np.zeros((4, 9), np.float32)), "shape (4, 9), where dimension 1 is not '8'")):
        try:
            wrong()
        except collage.Error as error:
            assert message in str(error), error
        else:
            raise AssertionError(message)


def noise_of(folder, name, nodes, inputs, output, **constants):
    """A model that draws random numbers, saved."""
    value = lambda item: helper.make_tensor_value_info(item[0], TensorProto.INT64 if item[0] == "n" else TensorProto.FLOAT, item[1])
    graph = helper.make_graph(nodes, name, [value(item) for item in inputs.items()], [value(("y", output))],
                              [numpy_helper.from_array(array, key) for key, array in constants.items()])
    path = os.path.join(folder, name + ".onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def check_random_numbers(folder):
    """Every run draws others, whatever its shapes, compiled or interpreted; another program and a saved one draw the same sequence."""
    noise = lambda like: helper.make_node("RandomNormalLike", [like], ["y"], "noise", seed=3.0)
    shapes = noise_of(folder, "shapes", [noise("x")], {"x": ["rows", 8]}, ["rows", 8])
    places = noise_of(folder, "places", [helper.make_node("NonZero", ["x"], ["at"]), helper.make_node("Cast", ["at"], ["like"], to=TensorProto.FLOAT),
                                         noise("like")], {"x": ["rows"]}, [1, "found"])
    saved = os.path.join(folder, "saved.collage")
    for path, given, load in ((shapes, [np.zeros((rows, 8), np.float32) for rows in (2, 2, 3, 2, 40000, 50000, 3, 40000)], collage.load),
                              (places, [np.arange(rows, dtype=np.float32) for rows in (3, 3, 4, 300000, 300000, 310000, 3)], collage.load_dynamic)):
        program = loaded(folder, path)
        drawn = [program(x) for x in given]
        assert {made.interpreted for made in program.specialisations} == {True, False}, program.specialisations
        assert len({values[0, :2].tobytes() for values in drawn}) == len(given), [values[0, :2] for values in drawn]
        program.save(saved)
        for again in (loaded(folder, path), load(saved)):
            for x, values in zip(given, drawn):
                np.testing.assert_array_equal(again(x), values)


def check_random_numbers_of_a_loop(folder):
    """Every iteration draws others, also where its shapes are other ones, and so does the next run."""
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("RandomNormalLike", ["v"], ["noise"], seed=3.0), helper.make_node("Gather", ["noise", "zero"], ["first"]),
         helper.make_node("Concat", ["v", "v"], ["next"], axis=0), helper.make_node("Identity", ["go"], ["again"])], "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("v", TensorProto.FLOAT, ["k"])],
        [value("again", TensorProto.BOOL, []), value("next", TensorProto.FLOAT, ["l"]), value("first", TensorProto.FLOAT, [])])
    path = noise_of(folder, "loop", [helper.make_node("Loop", ["n", "", "x"], ["", "y"], body=body)], {"n": [], "x": [1]}, ["n"],
                    zero=np.array(0, np.int64))
    program = loaded(folder, path)
    drawn = np.concatenate([program(np.array(5, np.int64), np.zeros(1, np.float32)) for _ in range(2)])
    assert len(set(drawn.tolist())) == 10, drawn


def main(arguments):
    return built_package.run([check_random_numbers, check_random_numbers_of_a_loop, check_buckets, check_states, check_loop, check_refusals, check_care, check_symbolic, check_text_over_symbols], arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
