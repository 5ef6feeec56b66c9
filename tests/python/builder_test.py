"""Modules built statement by statement, and tensor programs written in Python.

    python tests/python/builder_test.py [CHECK...]

Takes the build that COLLAGE_BIN lies in (default build/release). Prints "N passed, 0 failed" or what went wrong.
"""

import os
import sys

import numpy as np

import built_package

if built_package.BUILT:
    import collage
    from collage import te

X = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((16, 24)).astype(np.float32)


def compiled(folder, model, targets="native"):
    return model.compile(database=os.path.join(folder, "costs.db"), effort="fast", targets=targets)


def raised(call, *words):
    try:
        call()
    except collage.Error as wrong:
        assert all(word in str(wrong) for word in words), wrong
        return
    raise AssertionError("nothing was raised")


def product(A, B):
    k = te.reduce_axis(A.shape[1], "k")
    return te.compute((A.shape[0], B.shape[1]), lambda i, j: te.sum(A[i, k] * B[k, j], k), name="C")


def check_builder(folder):
    """Operators, programs, functions of libraries and one another; effects in the order of the statements."""
    seen = []
    collage.register_function("builder.log", lambda x, word: seen.append((word, float(x[0, 0]))), type=lambda x, word: [], effects=True,
                              attributes={"word": "-"})
    x, w, p = collage.parameter("x", X.shape), collage.parameter("w", W.shape), collage.parameter("p", (8, 24))
    builder = collage.Builder()
    with builder.function("scaled", p):
        scaled = builder.output(collage.call("multiply", p, collage.constant(0.25)))
    with builder.function("main", x, w):
        with builder.dataflow():
            h = builder.emit(collage.call("nn.relu", x))
            y = builder.emit_te(product, h, w)
            s = builder.emit_te("nn.softmax", y, axis=-1)
            t = builder.emit_te(lambda A, by: te.compute(A.shape, lambda i, j: te.tanh(A[i, j]) * by + 1), s, by=2.0, name="shifted")
            z = builder.emit(collage.call(scaled, t))
        builder.emit_packed("builder.log", z, word="last of all that is read")
        builder.emit_packed("builder.log", x)
        builder.output(z, y)
    model = builder.model()
    names = ["builder_log", "builder_log_1", "main", "nn_softmax", "product", "scaled", "shifted"]
    assert sorted(f.name for f in model.functions) == names, model.functions
    assert collage.parse(model.script()).text() == model.text()
    values = np.maximum(X, 0) @ W
    soft = np.exp(values - values.max(-1, keepdims=True))
    soft /= soft.sum(-1, keepdims=True)
    for targets in ("native", "reference"):
        program = compiled(folder, model, targets)
        assert not seen, seen
        made, y = program(X, W)
        np.testing.assert_allclose(y, values, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(made, (np.tanh(soft) * 2 + 1) / 4, rtol=1e-5)
        assert [word for word, _ in seen] == ["last of all that is read", "-"] and seen[1][1] == float(X[0, 0]), seen
        seen.clear()
    raised(lambda: builder.emit(x), "no function is open")
    with builder.function("other", x):
        with builder.dataflow():
            raised(lambda: builder.emit_packed("builder.log", x), "dataflow")
        raised(lambda: builder.emit_packed("builder.nobody", x), "builder.nobody")
        raised(builder.model, "@other has no output yet")
        two = builder.emit_packed("builder.nobody", x, results=[collage.ArrayType((3,), "int8"), collage.ArrayType((), "float32")])
        assert two.type == "(Tensor[(3), int8], float32)", two
        builder.output(two)
    assert sorted(builder.functions) == ["main", "other", "scaled"]


def check_programs(folder):
    """Programs and schedules are objects; every operator of terms computes what NumPy computes."""
    program = te.program(product, te.array((8, 16)), te.array((16, 24)))
    assert [(p.name, tuple(p.shape)) for p in program.parameters] == [("A", (8, 16)), ("B", (16, 24))], program
    assert [(r.name, tuple(r.shape), r.dtype) for r in program.results] == [("C", (8, 24), "float32")], program
    schedule = te.Schedule().reorder("C.update(0)", "j", "k", "i").vectorise("C.update(0)", "j", 8).parallel("C.update(0)", "i")
    scheduled = program.scheduled(schedule)
    assert scheduled.schedule == list(schedule) and not program.schedule, scheduled.schedule
    assert collage.TensorProgram(scheduled.text).schedule == scheduled.schedule
    raised(lambda: program.scheduled(te.Schedule().parallel("D", "i")), "D")
    x, w = collage.parameter("x", X.shape), collage.parameter("w", W.shape)
    builder = collage.Builder()
    with builder.function("main", x, w):
        builder.output(builder.emit_te(scheduled, x, w))
    np.testing.assert_allclose(compiled(folder, builder.model())(X, W), X @ W, rtol=1e-4, atol=1e-5)

    def all_of_terms(A, N):
        k = te.reduce_axis(16, "k")
        last = te.compute((8,), lambda i: te.max(A[i, k], k), name="last")
        first = te.compute(A.shape, lambda i, j: te.select(A[i, j] < 0, -A[i, j], 3 - A[i, j] / 2) + last[i])
        second = te.compute(A.shape, lambda i, j: te.max(te.min(first[i, j], 1), 0.5) + te.exp(first[7 - i, j]) - te.power(te.abs(A[i, j]), 1.5))
        third = te.compute((8, 4), lambda i, j: N[(i * 4 + j) % 8] // 2 + (j + 1).astype("int64"))
        return third, second

    n = np.arange(-4, 4, dtype=np.int64)
    builder = collage.Builder()
    numbers = collage.parameter("n", (8,), "int64")
    with builder.function("main", x, numbers):
        builder.output(builder.emit_te(all_of_terms, x, numbers))
    first = np.where(X < 0, -X, 3 - X / 2) + X.max(-1, keepdims=True)
    second = np.maximum(np.minimum(first, 1), 0.5) + np.exp(first[::-1]) - np.abs(X) ** 1.5
    places = np.arange(32).reshape(8, 4)
    third = n[places % 8] // 2 + np.arange(1, 5)
    for targets in ("native", "reference"):
        floats, integers = compiled(folder, builder.model(), targets)(X, n)
        np.testing.assert_allclose(floats, second, rtol=1e-4)
        np.testing.assert_array_equal(integers, third)


def check_wrong(folder):
    """Errors say what is wrong where it is written."""
    array = te.array((4, 5))
    raised(lambda: te.program(lambda A: te.compute((4,), lambda i: A[i]), array), "1 indices of an array with 2 dimensions")
    raised(lambda: te.program(lambda A: te.compute((4,), lambda i, j: A[i, j]), array), "2 indices of 1 dimensions")
    raised(lambda: te.program(lambda A: A, array), "gives what te.compute gives")
    raised(lambda: te.program(lambda A: te.compute((4,), lambda i: A[i, i + 2]), array), "A")
    raised(lambda: te.compute((4,), lambda i: i), "te.program or emit_te")
    raised(lambda: te.program(lambda A: te.compute((4,), lambda i: i / 2), array), "/ is for real numbers")
    raised(lambda: te.program(lambda A: te.compute((4,), lambda i: A[i, 0] // 2), array), "// is for integers")
    raised(lambda: te.program(lambda A: te.compute((4,), lambda i: i + 0.5), array), "0.5 among numbers that are int32")
    try:
        te.program(lambda A: te.compute((4,), lambda i: A[i, 0] if A[i, 0] < 0 else 0), array)
    except TypeError as wrong:
        assert "te.select" in str(wrong), wrong
    else:
        raise AssertionError("a term had a value")


if __name__ == "__main__":
    sys.exit(built_package.run([check_builder, check_programs, check_wrong], sys.argv[1:]))
