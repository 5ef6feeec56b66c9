"""Tiny ONNX models for the tests of the command, and the folder of bad files that its errors are shown with."""

import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


def model(nodes, inputs, outputs, weights=(), opset=OPSET):
    """A model of float32 inputs and outputs: {name: shape}; weights are {name: array}."""
    value = lambda item: helper.make_tensor_value_info(item[0], TensorProto.FLOAT, item[1])
    graph = helper.make_graph(nodes, "tiny", [value(i) for i in inputs.items()], [value(o) for o in outputs.items()],
                              [numpy_helper.from_array(a, n) for n, a in dict(weights).items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 8
    return made


def weights(*shape, seed=0):
    generator = np.random.Generator(np.random.PCG64(seed))
    return (generator.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1)).astype(np.float32)


def small_net(prefix="", seed=0, batch=1, filters=8):
    """Convolution, ReLU, pooling, dense, softmax; every name starts with `prefix`."""
    p = prefix
    nodes = [
        helper.make_node("Conv", [p + "image", p + "filters", p + "bias"], [p + "a"], p + "conv", kernel_shape=[3, 3],
                         pads=[1, 1, 1, 1]),
        helper.make_node("Relu", [p + "a"], [p + "b"], p + "relu"),
        helper.make_node("GlobalAveragePool", [p + "b"], [p + "c"], p + "pool"),
        helper.make_node("Flatten", [p + "c"], [p + "d"], p + "flatten"),
        helper.make_node("Gemm", [p + "d", p + "matrix", p + "offset"], [p + "e"], p + "dense"),
        helper.make_node("Softmax", [p + "e"], [p + "scores"], p + "softmax", axis=1),
    ]
    constants = {p + "filters": weights(filters, 3, 3, 3, seed=seed), p + "bias": weights(filters, seed=seed + 1),
                 p + "matrix": weights(filters, 10, seed=seed + 2), p + "offset": weights(10, seed=seed + 3)}
    return model(nodes, {p + "image": [batch, 3, 12, 12]}, {p + "scores": [batch, 10]}, constants)


def in_float16(made):
    """The model with float16 weights, inputs and outputs."""
    for tensor in made.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for value in [*made.graph.input, *made.graph.output]:
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return made


def few_rows(seed=0):
    """A dense layer of one row, whose weights native may keep in bfloat16 on any processor, and softmax."""
    nodes = [helper.make_node("MatMul", ["x", "matrix"], ["a"], "dense"), helper.make_node("Softmax", ["a"], ["scores"], "softmax", axis=1)]
    return model(nodes, {"x": [1, 512]}, {"scores": [1, 1024]}, {"matrix": weights(512, 1024, seed=seed)})


def relu_model(shape=(1, 4), input_name="x", output_name="y"):
    node = helper.make_node("Relu", [input_name], [output_name], "relu")
    return model([node], {input_name: list(shape)}, {output_name: list(shape)})


def reshape_model():
    """A reshape whose target is an input."""
    made = model([helper.make_node("Relu", ["x"], ["positive"], "relu"),
                  helper.make_node("Reshape", ["positive", "shape"], ["y"], "reshape")], {"x": [2, 3]}, {"y": ["a", "b"]})
    made.graph.input.append(helper.make_tensor_value_info("shape", TensorProto.INT64, [2]))
    return made


def places_model():
    """What is not zero: the shapes of the results depend on values."""
    made = model([helper.make_node("NonZero", ["x"], ["places"]), helper.make_node("Transpose", ["places"], ["rows"]),
                  helper.make_node("GatherND", ["x", "rows"], ["found"])], {"x": [2, 3]}, {"found": ["n"]})
    made.graph.output.append(helper.make_tensor_value_info("rows", TensorProto.INT64, ["n", 2]))
    return made


def external_model(location):
    """A sum with a weight kept in another file, wherever `location` says that it is."""
    made = model([helper.make_node("Add", ["x", "w"], ["y"], "add")], {"x": [1, 4]}, {"y": [1, 4]},
                 {"w": np.ones((1, 4), np.float32)})
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, text in (("location", location), ("offset", "0"), ("length", "16")):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, text
    return made


def write(folder, name, content):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)


MOCK = """{"targets": [{"name": "hook", "compiler": "hook",
              "rule": "combine(composite('relu', is_op('nn.relu')(*)), joins: any, max_depth: 8)"},
             {"name": "llvm", "rule": "combine(is_op_up_to('anchor'), max_depth: 8)"}],
 "mock_costs": {"per_op": {"hook": 1, "llvm": 2}, "fusion_benefit": 0.9, "max_estimates": 0}}
"""


RELAY = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4), float32]) -> Tensor[(1, 4), float32] {
  nn.relu(%x)
}
"""

PROGRAM = """#[version = "0.0.5"]
program @twice {
  param A: float32[1, 4];
  result C[i:1, j:4] = A[i, j] * 2.0f;
}
extern @product(Tensor[(1, 4), float32], Tensor[(4, 3), float32]) = "cblas_sgemm";
def @main(%x: Tensor[(1, 4), float32], %w: Tensor[(4, 3), float32]) {
  %0 = @twice(%x);
  nn.relu(@product(%0, %w))
}
"""


def write_bad_files(folder):
    """good.onnx, good.relay and good.npy, and one file for each way to be bad."""
    save = lambda made, name: onnx.save(made, os.path.join(folder, name))
    save(relu_model(), "good.onnx")
    write(folder, "good.relay", RELAY)
    np.save(os.path.join(folder, "good.npy"), np.zeros((1, 4), np.float32))
    write(folder, "torn.relay", """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 4), float32]) {
  %0 = on_device(nn.relu(%x), device="gpu", constrain_result=True);
  %1 = on_device(exp(%x), device="cpu", constrain_body=False, constrain_result=True);
  add(%0, %1)
}
""")

    os.mkdir(os.path.join(folder, "folder.onnx"))
    write(folder, "empty.onnx", b"")
    write(folder, "text.onnx", "This is no model.\n")
    whole = small_net().SerializeToString()
    write(folder, "truncated.onnx", whole[: len(whole) // 2])
    save(model([helper.make_node("Frobnicate", ["x"], ["t"], "first"), helper.make_node("Relu", ["t"], ["u"], "second"),
                helper.make_node("Defenestrate", ["u"], ["y"], "third")], {"x": [1, 4]}, {"y": [1, 4]}), "unknown.onnx")
    foreign = model([helper.make_node("Relu", ["x"], ["y"], "mine", domain="com.example")], {"x": [1, 4]}, {"y": [1, 4]})
    foreign.opset_import.append(helper.make_opsetid("com.example", 1))
    save(foreign, "foreign.onnx")
    save(model([helper.make_node("Relu", ["x"], ["y"], "relu")], {"x": ["batch", 4]}, {"y": ["batch", 4]}), "dynamic.onnx")
    save(model([helper.make_node("Relu", ["x"], ["y"], "relu")], {"x": [None, 4]}, {"y": [None, 4]}), "unnamed.onnx")
    save(places_model(), "places.onnx")
    save(model([helper.make_node("MatMul", ["x", "w"], ["y"], "product")], {"x": [1, 4]}, {"y": [1, 5]},
               {"w": np.ones((3, 5), np.float32)}), "misfit.onnx")
    save(model([helper.make_node("Relu", ["nowhere"], ["y"], "relu")], {"x": [1, 4]}, {"y": [1, 4]}), "dangling.onnx")
    save(external_model("absent.data"), "external_missing.onnx")
    save(external_model("../outside.data"), "external_escape.onnx")
    save(external_model("/etc/hostname"), "external_absolute.onnx")
    write(folder, "short.data", b"\0" * 8)
    save(external_model("short.data"), "external_short.onnx")
    cycle = [helper.make_node("Add", ["x", "b"], ["a"], "one"), helper.make_node("Relu", ["a"], ["b"], "two")]
    save(model(cycle, {"x": [1, 4]}, {"b": [1, 4]}), "cycle.onnx")

    np.save(os.path.join(folder, "shape.npy"), np.zeros((2, 4), np.float32))
    np.save(os.path.join(folder, "dtype.npy"), np.zeros((1, 4), np.int64))
    np.save(os.path.join(folder, "complex.npy"), np.zeros((1, 4), np.complex64))
    write(folder, "text.npy", "1 2 3 4 is not an array\n")
    write(folder, "empty.npy", b"")
    with open(os.path.join(folder, "good.npy"), "rb") as file:
        write(folder, "truncated.npy", file.read()[:-3])

    write(folder, "no_version.relay", "def @main(%x: Tensor[(1, 4), float32]) { nn.relu(%x) }\n")
    write(folder, "unknown.relay", RELAY.replace("nn.relu", "nn.frobnicate"))
    write(folder, "unclosed.relay", RELAY.replace("nn.relu(%x)\n}", "nn.relu(%x"))
    write(folder, "undefined.relay", RELAY.replace("relu(%x)", "relu(%z)"))
    write(folder, "character.relay", RELAY.replace("nn.relu", "nn.relu ?"))
    write(folder, "no_main.relay", RELAY.replace("@main", "@other"))
    write(folder, "mistyped.relay", RELAY.replace("-> Tensor[(1, 4)", "-> Tensor[(1, 5)"))
    write(folder, "empty.relay", "")
    write(folder, "no_label.relay", PROGRAM.replace("cblas_sgemm", "no_such_function"))
    write(folder, "no_program.relay", PROGRAM.replace("A[i, j] *", "B[i, j] *"))
    write(folder, "other_program.relay", PROGRAM.replace("param A: float32[1, 4]", "param A: float32[2, 4]"))

    write(folder, "bad.rules", "# Names before use.\nr = is_op('nn.relu');\nunion(r, s)\n")
    write(folder, "mock.json", MOCK)
    write(folder, "empty.json", "")
    write(folder, "unclosed.json", MOCK.replace("],\n", ",\n"))
    write(folder, "comma.json", MOCK.replace('"name": "llvm",', '"name": "llvm",,'))
    for name, before, after in [
        ("no_targets", MOCK[:MOCK.index('"mock_costs"')], "{"), ("list", MOCK, "[]"),
        ("joins", 'joins: any', 'joins: all'), ("depth", "('anchor'), max_depth: 8", "('anchor'), max_depth: 0"),
        ("type", '''"combine(is_op_up_to('anchor'), max_depth: 8)"''', "1"), ("key", "joins", "jions"),
        ("twice", '"llvm", "rule"', '"hook", "rule"'), ("pattern", "(*)", "(*"),
        ("operator", "nn.relu", "nn.rellu"), ("per_op", '"llvm": 2', '"nvcc": 2'), ("missing_cost", ', "llvm": 2', ""),
        ("negative", '"llvm": 2', '"llvm": -2'), ("benefit", "0.9", "1.9"), ("estimates", '"max_estimates": 0', '"max_estimates": -1'),
        ("one_estimate", '"max_estimates": 0', '"max_estimates": 1'), ("nothing", "is_op_up_to('anchor'), ", ""),
        ("word", "combine(comp", "combien(comp"), ("own", "is_op_up_to('anchor')", "own()"),
        ("no_rule", ''', "rule": "combine(is_op_up_to('anchor'), max_depth: 8)"''', ""), ("no_mock", MOCK[MOCK.index(',\n "mock_costs"'):], "}"),
        ("pair", '"mock_costs"', '"incompatible": [["hook", "cuda"]], "mock_costs"'),
    ]:
        assert before in MOCK, before
        write(folder, f"bad_{name}.json", MOCK.replace(before, after))
