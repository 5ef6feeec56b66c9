"""Small whole models in which an importer can go wrong without noticing: functions of the model, graphs inside nodes, names that meet,
initializers among the inputs, shapes and ways that only a run decides. Each is (name, model, inputs); another runtime says what it gives.
"""

import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
OPSET = 15


def value(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def names(text):
    """By single spaces: two of them stand around an input that is left out."""
    return text.split(" ") if text else []


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, names(inputs), names(outputs), **attributes)


def call(function, inputs, outputs, **attributes):
    return node(function, inputs, outputs, domain="local", **attributes)


def graph(nodes, outputs, inputs=(), **initializers):
    return helper.make_graph(nodes, "inner", list(inputs), outputs, [numpy_helper.from_array(v, k) for k, v in initializers.items()])


def function(name, inputs, outputs, nodes, attributes=()):
    return helper.make_function("local", name, inputs.split(), outputs.split(), nodes,
                                [helper.make_opsetid("", OPSET), helper.make_opsetid("local", 1)], list(attributes))


def model(nodes, inputs, outputs, functions=(), opset=OPSET, **initializers):
    whole = helper.make_graph(nodes, "whole", inputs, outputs, [numpy_helper.from_array(v, k) for k, v in initializers.items()])
    return helper.make_model(whole, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("local", 1)], ir_version=8,
                             functions=list(functions))


X = np.array([3, -1], np.float32)
YES, NO = np.array(True), np.array(False)


def added(own):
    """added(a, c) = c ? a + 100 : -a, whose first branch calls its number `own`."""
    more = graph([node("Constant", "", own, value_float=100.0), node("Add", f"a {own}", "sum")], [value("sum", None)])
    less = graph([node("Neg", "a", "opposite")], [value("opposite", None)])
    return function("added", "a c", "y", [node("If", "c", "y", then_branch=more, else_branch=less)])


def branches_of_functions():
    for argument in ("t", "sum", "a", "other"):
        for condition in (YES, NO):
            yield (f"argument {argument}, {condition}", model([call("added", f"{argument} c", "z")], [value(argument, [2]), value("c", [], BOOL)],
                                                              [value("z", [2])], [added("t")]), {argument: X, "c": condition})
    yield ("an initializer's name", model([call("added", "w c", "y"), node("Add", "y x", "z")], [value("x", [2]), value("c", [], BOOL)],
                                          [value("z", [2])], [added("w")], w=np.array([5, 6], np.float32)), {"x": X, "c": YES})
    yield ("names that are made", model([node("Neg", "x", "z#0/t"), call("added", "z#0/t c", "z"), node("Add", "z z#0/t", "y")],
                                        [value("x", [2]), value("c", [], BOOL)], [value("y", [2])], [added("t")]), {"x": X, "c": YES})


def functions_in_functions():
    inner = function("inner", "a", "y", [node("Add", "a a", "t"), node("Neg", "t", "y")])
    outer = function("outer", "a", "y", [node("Abs", "a", "t"), call("inner", "t", "y")])
    yield ("one output", model([call("outer", "x", "y")], [value("x", [2])], [value("y", [2])], [inner, outer]), {"x": X})
    twice = function("twice", "a", "y z", [call("inner", "a", "y"), call("inner", "y", "z")])
    yield ("two calls", model([call("twice", "t", "u v"), node("Sub", "u v", "y")], [value("t", [2])], [value("y", [2])], [inner, twice]), {"t": X})
    less = graph([node("Neg", "x", "t"), call("inner", "t", "q")], [value("q", None)])
    more = graph([call("inner", "x", "r")], [value("r", None)])
    chosen = function("chosen", "x", "y", [
        node("ReduceSum", "x", "s", keepdims=0), node("Constant", "", "zero", value_float=0.0), node("Less", "s zero", "c"),
        node("If", "c", "y", then_branch=less, else_branch=more)])
    for sign in (1, -1):
        yield (f"in branches, {sign}", model([call("chosen", "t", "s"), node("Mul", "s t", "y")], [value("t", [2])], [value("y", [2])],
                                             [inner, chosen]), {"t": sign * X})
    given = referring(node("LeakyRelu", "a", "q"), "alpha", "slope")
    leaky = function("leaky", "a c", "y", [node("If", "c", "y", then_branch=graph([given], [value("q", None)]),
                                                else_branch=graph([node("Neg", "a", "r")], [value("r", None)]))], ["slope"])
    yield ("attributes in branches", model([call("leaky", "x c", "y", slope=0.5)], [value("x", [2]), value("c", [], BOOL)], [value("y", [2])],
                                           [leaky]), {"x": X, "c": YES})


def referring(made, attribute, source):
    """The node, whose attribute is the one that its function calls `source`."""
    made.attribute.append(AttributeProto(name=attribute, type=AttributeProto.FLOAT, ref_attr_name=source))
    return made


def attributes_of_functions():
    leaky = function("leaky", "a", "y", [referring(node("LeakyRelu", "a", "y"), "alpha", "slope")], ["slope"])
    outer = function("outer", "a", "y", [referring(call("leaky", "a", "t"), "slope", "steep"), referring(node("Constant", "", "k"), "value_float", "steep"),
                                         node("Add", "t k", "y")], ["steep"])
    yield ("under other names", model([call("outer", "x", "y", steep=0.25), call("outer", "y", "z", steep=3.0)], [value("x", [2])],
                                      [value("y", [2]), value("z", [2])], [leaky, outer]), {"x": X})


def initializers_among_inputs():
    made = model([node("Mul", "x w", "t"), node("Add", "t w", "y")], [value("w", [2]), value("x", [2])], [value("y", [2])], w=7 * X)
    made.ir_version = 3
    yield ("all of them", made, {"x": X})


def scans():
    square = function("square", "a", "y", [node("Identity", "a", "t"), node("Mul", "t a", "y")])
    body = graph([node("Add", "t p", "n"), call("square", "n", "m"), node("Mul", "m q", "r"), node("Add", "r x", "seen")],
                 [value("n", [2]), value("seen", [2])], [value("t", [2]), value("p", [2]), value("q", [2])])
    parts = np.arange(6, dtype=np.float32) - 2
    yield ("backwards along another axis", model(
        [node("Scan", "x a b", "last all", body=body, num_scan_inputs=2, scan_input_axes=[1, 0], scan_input_directions=[1, 0],
              scan_output_axes=[1], scan_output_directions=[1])],
        [value("x", [2]), value("a", [2, 3]), value("b", [3, 2])], [value("last", [2]), value("all", [2, 3])], [square]),
        {"x": X, "a": parts.reshape(2, 3), "b": parts.reshape(3, 2)})


def loops():
    square = function("square", "a", "y", [node("Identity", "a", "t"), node("Mul", "t a", "y")])
    counters = [value("i", [], INT64), value("go", [], BOOL), value("v", [2])]
    body = graph([node("Identity", "go", "on"), call("square", "v", "w"), node("Add", "w x", "seen")],
                 [value("on", [], BOOL), value("w", [2]), value("seen", [2])], counters)
    yield ("a known count", model([node("Loop", "trips  start", "y all", body=body), ], [value("x", [2]), value("start", [2])],
                                  [value("y", [2]), value("all", None)], [square], trips=np.array(3, np.int64)),
           {"x": X, "start": np.array([0.5, -0.25], np.float32)})
    growing = graph([node("Add", "v v", "w"), node("ReduceMax", "w", "most", keepdims=0), node("Less", "most limit", "on")],
                    [value("on", [], BOOL), value("w", [2])], counters, limit=np.array(100, np.float32))
    yield ("a computed end", model([node("Loop", "  x", "y", body=growing)], [value("x", [2])], [value("y", [2])]), {"x": X})
    choice = graph([node("If", "c", "w", then_branch=graph([node("Mul", "v x", "p")], [value("p", None)]),
                         else_branch=graph([node("Sub", "v x", "d")], [value("d", None)])), node("Identity", "go", "on"), node("Not", "c", "other")],
                   [value("on", [], BOOL), value("w", [2]), value("other", [], BOOL)], counters[:3] + [value("c", [], BOOL)])
    yield ("branches in a loop", model([node("Loop", "n  x c", "y d", body=choice)], [value("x", [2]), value("c", [], BOOL), value("n", [], INT64)],
                                       [value("y", [2]), value("d", [], BOOL)]), {"x": X, "c": YES, "n": np.array(3, np.int64)})


def values_decide():
    boxes = np.random.default_rng(3).random((2, 30, 4)).astype(np.float32)
    boxes[..., 2:] = boxes[..., 2:] * 0.4 + 0.1
    scores = np.random.default_rng(4).random((2, 2, 30)).astype(np.float32)
    yield ("NonMaxSuppression", model(
        [node("NonMaxSuppression", "boxes scores most overlap least", "kept", center_point_box=1), node("Shape", "kept", "count"),
         node("Gather", "kept first", "batches", axis=1)],
        [value("boxes", [2, 30, 4]), value("scores", [2, 2, 30])], [value("kept", None, INT64), value("count", [2], INT64), value("batches", None, INT64)],
        most=np.array([5], np.int64), overlap=np.array([0.4], np.float32), least=np.array([0.3], np.float32), first=np.array(0, np.int64)),
        {"boxes": boxes, "scores": scores})
    whole = np.array([3, 1, 3, 2, 1], np.int64)
    yield ("Unique", model([node("Unique", "x", "y first back counts"), node("Gather", "y back", "again")], [value("x", [5], INT64)],
                           [value("y", None, INT64), value("counts", None, INT64), value("again", None, INT64)]), {"x": whole})
    yield ("NonZero", model([node("NonZero", "x", "places"), node("Transpose", "places", "rows"), node("GatherND", "x rows", "values")],
                            [value("x", [3, 2])], [value("rows", None, INT64), value("values", None)]),
           {"x": np.array([[0, 1], [2, 0], [0, -3]], np.float32)})


FAMILIES = (branches_of_functions, functions_in_functions, attributes_of_functions, initializers_among_inputs, scans, loops, values_decide)
