"""Models over symbols in Python: what a function builds for each size, ONNX with open dimensions.

    python tests/python/symbolic_test.py [CHECK...]

Takes the build that COLLAGE_BIN lies in (default build/release). Prints "N passed, 0 failed" or what went wrong.
"""

import os
import sys

import numpy as np
import onnx

import built_package

if built_package.BUILT:
    import collage


def check_families(folder):
    """What a function builds for each size as one module, its instances, a program, its text; what is no family."""
    weights = np.random.default_rng(5).standard_normal((16, 80)).astype(np.float32)

    def mlp(n, d):
        if d > 40:
            raise collage.Error(collage.ErrorCode.BAD_MODEL, "too wide")
        x, w = collage.parameter("x", (n, d)), collage.parameter("w", (d, 16))
        h = collage.call("nn.relu", collage.call("nn.matmul", x, w))
        return collage.Model.of(collage.function([x, w], collage.call("reshape", collage.call("nn.matmul", h, collage.constant(weights)), newshape=[n * 80])))

    family = collage.generalise(mlp)
    assert family.symbols == ["n", "d"] and repr(family) == "<collage.SymbolicModel x: float32[n, d], w: float32[d, 16] -> output0: float32[80 * n]>", family
    assert "newshape=[80 * n]" in family.text, family.text
    text = os.path.join(folder, "mlp.relay")
    family.save(text)
    again = collage.load_symbolic(text)
    assert again.symbols == family.symbols and again.text.replace("mlp.relay.bin", "constants") == family.text
    program = family.compile(targets="reference")
    for n, d in ((1, 3), (6, 40), (5, 1)):
        random = np.random.default_rng(n)
        x, w = random.standard_normal((n, d), np.float32), random.standard_normal((d, 16), np.float32)
        wanted = (np.maximum(x @ w, 0) @ weights).reshape(-1)
        for model in (family, again):
            instance = model.at(n=n, d=d)
            assert instance.inputs[0].shape == (n, d)
            np.testing.assert_allclose(instance.compile(targets="reference")(x, w), wanted, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(program(x, w), wanted, rtol=1e-4, atol=1e-4)
    tests = [
        (lambda: family.at(n=3), "symbol d has no value: give one"),
        (lambda: family.at(n=3, d=4, k=5), "a value is given for symbol k, which fn (%x: Tensor[(n, d), float32], %w: Tensor[(d, 16), float32]) -> "
                                           "Tensor[(80 * n), float32] does not have"),
        (lambda: again.save(os.path.join(folder, "other.relay")), "its constants are beside the file that it was read from"),
        (lambda: family.save(os.path.join(folder, "other.onnx")), "a module's name ends in .relay"),
        (lambda: collage.generalise(lambda n: collage.Model.of(collage.function([collage.parameter("x", (8,))], collage.parameter("x", (8,))))),
         "symbol n is no dimension of an input"),
        (lambda: collage.generalise(lambda n: mlp(n, 41)), "too wide"),
        (lambda: collage.load_symbolic(os.path.join(folder, "none.onnx")), "none.onnx"),
    ]
    for call, wanted in tests:
        try:
            call()
            assert False, f"nothing was raised, wanted {wanted}"
        except collage.Error as error:
            assert wanted in str(error), (wanted, str(error))
    try:
        collage.generalise(lambda n: 1 / 0)
        assert False
    except ZeroDivisionError:
        pass
    # Of ONNX: what its dimensions are.
    path = os.path.join(folder, "padded.onnx")
    value = lambda name, shape: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
    graph = onnx.helper.make_graph([onnx.helper.make_node("Shape", ["x"], ["s"]), onnx.helper.make_node("ConstantOfShape", ["s"], ["zeros"]),
                                    onnx.helper.make_node("Concat", ["x", "zeros", "y"], ["z"], axis=0)],
                                   "g", [value("x", ["rows", "k.1"]), value("y", ["total", "k.1"])], [value("z", None)])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    assert repr(collage.load_symbolic(path)) == "<collage.SymbolicModel x: float32[rows, k_1], y: float32[total, k_1] -> z: float32[2 * rows + total, k_1]>"
    fixed = collage.load_symbolic(path, dims={"k.1": 4, "total": "2 * rows"})
    assert repr(fixed) == "<collage.SymbolicModel x: float32[rows, 4], y: float32[2 * rows, 4] -> z: float32[4 * rows, 4]>", fixed
    x, y = np.ones((3, 4), np.float32), 2 * np.ones((6, 4), np.float32)
    np.testing.assert_array_equal(fixed.compile(targets="reference")(x, y), np.concatenate([x, 0 * x, y]))
    for dims, wanted in (({"none": 3}, "no input has a dimension 'none'"), ({"total": "rows +"}, "dimension 'total' is no term over others: 'rows +'")):
        try:
            collage.load_symbolic(path, dims=dims)
            assert False, dims
        except collage.Error as error:
            assert wanted in str(error), error


def check_loops(folder):
    """Loop and Scan over a dimension that is a symbol: one loop for all lengths, few or many."""
    value = lambda name, shape, kind=onnx.TensorProto.FLOAT: onnx.helper.make_tensor_value_info(name, kind, shape)
    node, steps = onnx.helper.make_node, (1, 2, 5, 200)
    body = onnx.helper.make_graph([node("Mul", ["h", "a"], ["ha"]), node("Add", ["ha", "x"], ["next"]), node("Tanh", ["next"], ["y"])], "body",
                                  [value("h", [4]), value("x", [4])], [value("next", [4]), value("y", [4])])
    counted = onnx.helper.make_graph([node("Mul", ["h", "a"], ["ha"]), node("Gather", ["xs", "i"], ["x"], axis=0), node("Add", ["ha", "x"], ["next"]),
                                      node("Tanh", ["next"], ["y"]), node("Identity", ["go"], ["again"])], "body",
                                     [value("i", [], onnx.TensorProto.INT64), value("go", [], onnx.TensorProto.BOOL), value("h", [4])],
                                     [value("again", [], onnx.TensorProto.BOOL), value("next", [4]), value("y", [4])])
    for nodes in ([node("Scan", ["h0", "xs"], ["last", "ys"], body=body, num_scan_inputs=1)],
                  [node("Shape", ["xs"], ["n"], start=0, end=1), node("Squeeze", ["n"], ["trips"]),
                   node("Loop", ["trips", "", "h0"], ["last", "ys"], body=counted)]):
        path = os.path.join(folder, "loop.onnx")
        graph = onnx.helper.make_graph(nodes, "g", [value("h0", [4]), value("xs", ["steps", 4]), value("a", [4])], [value("last", [4]), value("ys", ["steps", 4])])
        onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
        family = collage.load_symbolic(path)
        assert family.symbols == ["steps"] and family.text.count("control.loop") == 1 and family.outputs[1].dims[0] == "steps", family.text
        program = family.compile(targets="reference")
        for count in steps:
            random = np.random.default_rng(count)
            h, xs, a = (random.standard_normal(shape, np.float32) for shape in ((4,), (count, 4), (4,)))
            a = np.abs(a) % 1
            last, ys = program(h, xs, a)
            for x, y in zip(xs, ys):
                h = h * a + x
                np.testing.assert_allclose(y, np.tanh(h), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(last, h, rtol=1e-4, atol=1e-5)


def main(arguments):
    return built_package.run([check_families, check_loops], arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
