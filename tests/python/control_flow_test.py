"""If, Loop and Scan as one module: imported, compiled, saved and loaded, against ONNX Runtime.

    python tests/python/control_flow_test.py [CHECK...]

Takes the build that COLLAGE_BIN lies in (default build/release). Prints "N passed, 0 failed" or what went wrong.
"""

import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import built_package

if built_package.BUILT:
    import collage

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
NODE = helper.make_node
RANDOM = np.random.default_rng(3)


def value(name, kind, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def graph(nodes, inputs, outputs, **constants):
    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    return helper.make_graph(nodes, "g", inputs, outputs, initializers)


def model(nodes, inputs, outputs, **constants):
    return helper.make_model(graph(nodes, inputs, outputs, **constants), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def ssm(steps=40, states=6, stacked=True):
    """h = a * h + b * x[i], y[i] = c . h: the rows are taken by the counter, and what the body reads around it stays."""
    body = graph(
        [NODE("Gather", ["x", "i"], ["x_i"], axis=0), NODE("Mul", ["a", "h"], ["decayed"]), NODE("Mul", ["b", "x_i"], ["driven"]),
         NODE("Add", ["decayed", "driven"], ["h_next"]), NODE("Mul", ["h_next", "c"], ["read"]),
         NODE("ReduceSum", ["read"], ["y_i"], keepdims=0), NODE("Identity", ["go"], ["go_on"])],
        [value("i", INT64, []), value("go", BOOL, []), value("h", FLOAT, [1, states])],
        [value("go_on", BOOL, []), value("h_next", FLOAT, [1, states])] + [value("y_i", FLOAT, [])] * stacked)
    return model([NODE("Loop", ["trips", "", "h0"], ["h_last", "y"][: 1 + stacked], body=body)],
                 [value("x", FLOAT, [steps]), value("h0", FLOAT, [1, states]), value("b", FLOAT, [1, states])],
                 [value("h_last", FLOAT, None)] + [value("y", FLOAT, None)] * stacked,
                 trips=np.int64(steps), a=np.linspace(0.1, 0.9, states, dtype=np.float32)[None], c=normal(1, states))


def while_loop():
    """Doubles until it is large, as often as an input allows at most."""
    body = graph([NODE("Mul", ["v", "factor"], ["next"]), NODE("ReduceMax", ["next"], ["most"], keepdims=0), NODE("Less", ["most", "limit"], ["again"])],
                 [value("i", INT64, []), value("go", BOOL, []), value("v", FLOAT, [5])],
                 [value("again", BOOL, []), value("next", FLOAT, [5])], limit=np.float32(1000))
    return model([NODE("Loop", ["trips", "first", "x"], ["y"], body=body)],
                 [value("x", FLOAT, [5]), value("factor", FLOAT, []), value("trips", INT64, []), value("first", BOOL, [])], [value("y", FLOAT, [5])])


def nested_if():
    """A condition inside a condition, the inner one on what the outer branch computes."""
    inner_then = graph([NODE("Exp", ["scaled"], ["r"])], [], [value("r", FLOAT, [4])])
    inner_else = graph([NODE("Sub", ["scaled", "y"], ["r"])], [], [value("r", FLOAT, [4])])
    then = graph([NODE("Mul", ["x", "two"], ["scaled"]), NODE("ReduceSum", ["scaled"], ["sum"], keepdims=0), NODE("Less", ["sum", "zero"], ["negative"]),
                  NODE("If", ["negative"], ["chosen"], then_branch=inner_then, else_branch=inner_else)],
                 [], [value("chosen", FLOAT, [4]), value("scaled", FLOAT, [4])], two=np.float32(2), zero=np.float32(0))
    other = graph([NODE("Neg", ["y"], ["turned"]), NODE("Identity", ["x"], ["same"])], [], [value("turned", FLOAT, [4]), value("same", FLOAT, [4])])
    return model([NODE("If", ["condition"], ["p", "q"], then_branch=then, else_branch=other), NODE("Add", ["p", "q"], ["z"])],
                 [value("condition", BOOL, []), value("x", FLOAT, [4]), value("y", FLOAT, [4])], [value("z", FLOAT, [4]), value("q", FLOAT, [4])])


def scan(length=37):
    """A recurrence with weights of its own, along the second axis backwards, with results along both."""
    width = 16
    body = graph(
        [NODE("MatMul", ["h", "w"], ["mixed"]), NODE("Add", ["mixed", "x_t"], ["sum"]), NODE("Tanh", ["sum"], ["next"]), NODE("Add", ["next", "around"], ["seen"]),
         NODE("Identity", ["next"], ["too"])],
        [value("h", FLOAT, [2, width]), value("x_t", FLOAT, [2, width])],
        [value("next", FLOAT, [2, width]), value("seen", FLOAT, [2, width]), value("too", FLOAT, [2, width])], w=normal(width, width) / 4)
    return model([NODE("Scan", ["h0", "xs"], ["last", "all", "turned"], body=body, num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1],
                       scan_output_axes=[1, 0], scan_output_directions=[0, 1])],
                 [value("h0", FLOAT, [2, width]), value("xs", FLOAT, [2, length, width]), value("around", FLOAT, [width])],
                 [value("last", FLOAT, None), value("all", FLOAT, None), value("turned", FLOAT, None)])


def loop_in_loop():
    """An inner loop as often as the outer counter says, and a condition in it."""
    then = graph([NODE("Add", ["w", "one"], ["r"])], [], [value("r", FLOAT, [3])])
    other = graph([NODE("Mul", ["w", "half"], ["r"])], [], [value("r", FLOAT, [3])])
    inner = graph([NODE("Mod", ["j", "two"], ["rest"]), NODE("Equal", ["rest", "zero"], ["even"]),
                   NODE("If", ["even"], ["w_next"], then_branch=then, else_branch=other), NODE("Identity", ["go2"], ["go2_on"])],
                  [value("j", INT64, []), value("go2", BOOL, []), value("w", FLOAT, [3])], [value("go2_on", BOOL, []), value("w_next", FLOAT, [3])],
                  two=np.int64(2), zero=np.int64(0), one=np.float32(1), half=np.float32(0.5))
    outer = graph([NODE("Loop", ["i", "", "v"], ["v_next"], body=inner), NODE("Identity", ["go"], ["go_on"]), NODE("ReduceSum", ["v_next"], ["sum"], keepdims=1)],
                  [value("i", INT64, []), value("go", BOOL, []), value("v", FLOAT, [3])],
                  [value("go_on", BOOL, []), value("v_next", FLOAT, [3]), value("sum", FLOAT, [1])])
    return model([NODE("Loop", ["trips", "", "x"], ["y", "sums"], body=outer)], [value("x", FLOAT, [3])],
                 [value("y", FLOAT, [3]), value("sums", FLOAT, None)], trips=np.int64(12))


def lstm_with_lengths():
    """An operator of its own kind inside a loop's module, and one whose lengths an input gives."""
    hidden, width = 8, 4
    recurrence = NODE("LSTM", ["xs", "W", "R", "B", "lengths"], ["ys", "last"], hidden_size=hidden)
    body = graph([NODE("MatMul", ["h", "mix"], ["mixed"]), NODE("Tanh", ["mixed"], ["next"]), NODE("Identity", ["go"], ["go_on"])],
                 [value("i", INT64, []), value("go", BOOL, []), value("h", FLOAT, [1, 2, hidden])], [value("go_on", BOOL, []), value("next", FLOAT, [1, 2, hidden])],
                 mix=normal(hidden, hidden) / 3)
    return model([recurrence, NODE("Loop", ["trips", "", "last"], ["y"], body=body)],
                 [value("xs", FLOAT, [7, 2, width]), value("lengths", TensorProto.INT32, [2]), value("trips", INT64, [])],
                 [value("ys", FLOAT, None), value("y", FLOAT, None)],
                 W=normal(1, 4 * hidden, width), R=normal(1, 4 * hidden, hidden) / 3, B=normal(1, 8 * hidden))


def runs_of_while():
    x = np.array([1, 2, 3, -4, 0], np.float32)
    for factor, trips, first in ((2, 100, True), (2, 3, True), (2, 0, True), (2, 5, False), (1, 50, True), (np.nan, 9, True)):
        yield [x, np.float32(factor), np.int64(trips), np.bool_(first)]


CASES = {
    "ssm": (ssm, lambda: [[normal(40), normal(1, 6), normal(1, 6)], [np.full(40, np.nan, np.float32), normal(1, 6), normal(1, 6)]]),
    "ssm of states alone": (lambda: ssm(stacked=False), lambda: [[normal(40), normal(1, 6), normal(1, 6)]]),
    "while": (while_loop, runs_of_while),
    "nested if": (nested_if, lambda: [[np.bool_(c), sign * np.abs(normal(4)), normal(4)] for c in (0, 1) for sign in (np.float32(-1), np.float32(1))]),
    "scan": (scan, lambda: [[normal(2, 16), normal(2, 37, 16), normal(16)]]),
    "loop in loop": (loop_in_loop, lambda: [[normal(3)]]),
    "lstm with lengths": (lstm_with_lengths, lambda: [[normal(7, 2, 4), np.array(lengths, np.int32), np.int64(trips)] for lengths, trips in (((7, 3), 4), ((1, 5), 0))]),
}


def expected(path, inputs):
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))


def close(ours, theirs):
    assert list(ours) == list(theirs), f"{list(ours)}, not {list(theirs)}"
    for name, wanted in theirs.items():
        given = np.asarray(ours[name])
        assert given.shape == wanted.shape and given.dtype == wanted.dtype, f"{name}: {given.dtype} {given.shape}, not {wanted.dtype} {wanted.shape}"
        np.testing.assert_allclose(given, wanted, rtol=2e-4, atol=2e-5, err_msg=name)


def check_of(name, targets):
    make, runs = CASES[name]

    def check(folder):
        made = make()
        path = built_package.saved(folder, made)
        loaded = collage.load(path)
        text = loaded.text()
        assert "control." in text, text
        assert collage.parse(text).text() == text
        program = loaded.compile(targets=targets, effort="fast", database=os.path.join(folder, "costs.db"))
        file = os.path.join(folder, "program.collage")
        program.save(file)
        again = collage.load(file)
        for arrays in runs():
            inputs = {given.name: np.asarray(array) for given, array in zip(made.graph.input, arrays, strict=True)}
            ours = program.run(inputs)
            close(ours, expected(path, inputs))
            for output, same in again.run(inputs).items():
                np.testing.assert_array_equal(np.asarray(ours[output]), np.asarray(same))

    return f"{name} by {targets}", check


def check_of_shapes(folder):
    """A loop over rows whose number a run decides is one in each specialisation, in the file too."""
    width = 3
    body = graph([NODE("Add", ["s", "row"], ["sum"]), NODE("Tanh", ["sum"], ["next"]), NODE("Identity", ["next"], ["seen"])],
                 [value("s", FLOAT, [width]), value("row", FLOAT, [width])], [value("next", FLOAT, [width]), value("seen", FLOAT, [width])])
    made = model([NODE("Scan", ["start", "rows"], ["last", "all"], body=body, num_scan_inputs=1)],
                 [value("start", FLOAT, [width]), value("rows", FLOAT, ["n", width])], [value("last", FLOAT, [width]), value("all", FLOAT, ["n", width])])
    path, file = built_package.saved(folder, made), os.path.join(folder, "shapes.collage")
    program = collage.load_dynamic(path, targets="reference", database=os.path.join(folder, "costs.db"))
    given = {n: {"start": normal(width), "rows": normal(n, width)} for n in (40, 200)}
    ours = {n: program.run(inputs) for n, inputs in given.items()}
    program.save(file)
    again = collage.load(file)
    for n, inputs in given.items():
        close(ours[n], expected(path, inputs))
        close(again.run(inputs), {name: np.asarray(array) for name, array in ours[n].items()})


def check_script_and_passes(folder):
    """A module with a loop reads as script, and passes of the user's enter its functions."""
    loaded = collage.load(built_package.saved(folder, ssm()))
    assert collage.parse(loaded.script()).text() == loaded.text()
    seen = []
    loaded.rewrite(lambda call: seen.append(call.op))
    assert "sum" in seen and seen[-1] == "control.loop", seen


if __name__ == "__main__":
    cases = [check_of(name, targets) for name in CASES for targets in ("reference", "native", "native,onednn")]
    sys.exit(built_package.run([*cases, check_of_shapes, check_script_and_passes], sys.argv[1:]))
