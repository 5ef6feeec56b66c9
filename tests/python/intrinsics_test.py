"""Intrinsics of users: functions in C that schedules of programs name, of lanes and of tiles of two dimensions."""

import ctypes
import os
import sys

import built_package
import numpy as np

if built_package.BUILT:
    import collage


def refused(message, make):
    try:
        make()
    except collage.Error as error:
        assert message in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError(message)


def check_tiles(folder):
    """A lowering of a tile of two dimensions, of arrays whose rows lie apart; extents that no tiles fill are refused; without a lowering loops stay."""
    declaration = """program (k = 2) {
      param A: float32[4, 2 * k];
      param B: float32[k, 8, 2];
      result C[i:4, j:8] = sum(t:k, r:2) A[i, t * 2 + r] * B[t, j, r];
    }"""
    calls = []

    def lowering(wrong_rows):
        @ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.POINTER(ctypes.c_float)] * 3, ctypes.POINTER(ctypes.c_int64))
        def call(k, sums, a, b, rows):
            apart = [2 * k if wrong_rows and i == 1 else rows[i] for i in range(3)]
            calls.append((k, apart))
            for i in range(4):
                for j in range(8):
                    for t in range(2 * k):
                        sums[i * apart[0] + j] += a[i * apart[1] + t] * b[t // 2 * apart[2] + 2 * j + t % 2]
        return call

    refused("its lowering makes", lambda: collage.register_intrinsic("tile4x8", declaration, lowering(True)))
    for wrong in (("A[i, t * 2 + r]", "A[t * 2, i + r]"), ("B[t, j, r]", "B[t, j, r] * A[i, t]"), ("A[i, t * 2 + r]", "A[i, t * t + r]")):
        refused("is no sum over terms", lambda wrong=wrong: collage.register_intrinsic("tile4x8", declaration.replace(*wrong), lowering(False)))
    collage.register_intrinsic("tile4x8", declaration, lowering(False))
    collage.register_intrinsic("tile4x8_here", declaration, None)
    text = """program @product {
      param X: float32[3, 8, 16];
      param W: float32[16, 24];
      stage P[k:8, j:24, r:2] = exp(W[k * 2 + r, j]);
      stage Y[n:3, i:8, j:24] = sum(b:2, k:4, r:2) X[n, i, b * 8 + k * 2 + r] * P[b * 4 + k, j, r];
      result Z[n:3, i:8, j:24] = Y[n, i, j] + 1.0f;
      schedule { P.compute_root(); Y.PLACE; Y.update(0).tensorise(i, j, k, r, tile4x8, 4); Z.parallel(n); }
    }
    def @main(%x: Tensor[(3, 8, 16), float32], %w: Tensor[(16, 24), float32]) { @product(%x, %w) }"""
    random = np.random.default_rng(6)
    x, w = random.standard_normal((3, 8, 16), np.float32), random.standard_normal((16, 24), np.float32)
    # A tile is computed whole where less of it is read.
    for place, times in (("compute_root()", 36), ("compute_at(Z, n)", 36), ("compute_at(Z, i)", 144)):
        program = collage.parse(text.replace("PLACE", place)).compile(targets="native", database=os.path.join(folder, "costs.db"))
        calls.clear()
        np.testing.assert_allclose(program(x, w), x @ np.exp(w) + 1, rtol=1e-3, atol=1e-4)
        assert len(calls) == times and all(k == 4 and rows[0] == 24 and rows[1:] == [16, 48] for k, rows in calls), (place, len(calls), calls[0])
    plain = collage.parse(text.replace("PLACE", "compute_root()").replace("tile4x8", "tile4x8_here"))
    calls.clear()
    np.testing.assert_allclose(plain.compile(targets="native", database=os.path.join(folder, "costs.db"))(x, w), x @ np.exp(w) + 1, rtol=1e-3, atol=1e-4)
    assert not calls

    def is_none(why, *changes):
        changed = text.replace("PLACE", "compute_root()")
        for change in changes:
            assert change[0] in changed
            changed = changed.replace(*change)
        refused(why, lambda: collage.parse(changed))

    is_none("4 rows do not divide i:6", ("i:8", "i:6"))
    is_none("8 lanes do not divide j:20", ("j:24", "j:20"), ("16, 24", "16, 20"))
    is_none("it adds 2 terms at a time", ("tile4x8, 4", "tile4x8, 2"))
    is_none("is for multiples of 2, not 3", ("tile4x8, 4", "tile4x8, 3"))
    is_none("it has 4 loops", ("j, k, r, tile", "j, k, tile"))
    is_none("something else", ("P[b * 4 + k, j, r]", "P[k * 2 + b, j, r]"))
    is_none("something else", ("X[n, i, b * 8 + k * 2 + r]", "X[n, i, b * 8 + r * 4 + k]"))
    is_none("which has to be stored", ("P.compute_root();", ""))


def check_intrinsics(folder):
    """The documented examples; a lowering is called by the program that names it, and refused where it computes something else."""
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "tensor-programs.md"), encoding="utf-8") as file:
        examples = [part.split("```")[0] for part in file.read().split("```python\n")[1:] if "register_intrinsic" in part]
    assert len(examples) == 2
    for example in examples:
        assert example.count("\n") < 60
        exec(example, {})  # noqa: S102
    declaration = """program (n = 4) {
      param A: float32[2];
      param B: float32[n, 2];
      result C[j:n] = sum(r:2) A[r] * B[j, r];
    }"""
    calls = []

    def lowering(factor):
        @ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.POINTER(ctypes.c_float)] * 3, ctypes.POINTER(ctypes.c_int64))
        def call(lanes, sums, a, b, rows):
            calls.append(lanes)
            for j in range(lanes):
                sums[j] += factor * (a[0] * b[2 * j] + a[1] * b[2 * j + 1])
        return call

    refused("its lowering makes", lambda: collage.register_intrinsic("pairs", declaration, lowering(2)))
    refused("is no sum over terms", lambda: collage.register_intrinsic("pairs", declaration.replace("sum(", "max("), lowering(1)))
    collage.register_intrinsic("pairs", declaration, lowering(1))
    refused("the name is taken", lambda: collage.register_intrinsic("pairs", declaration, lowering(1)))
    text = """program @rows {
      param X: float32[5, 6];
      param W: float32[3, 8, 2];
      stage P[k:3, j:8, r:2] = exp(W[k, j, r]);
      result Y[i:5, j:8] = sum(k:3, r:2) X[i, k * 2 + r] * P[k, j, r];
      schedule { P.compute_root(); Y.update(0).tensorise(j, r, pairs, 4); }
    }
    def @main(%x: Tensor[(5, 6), float32], %w: Tensor[(3, 8, 2), float32]) { @rows(%x, %w) }"""
    refused("which has to be stored", lambda: collage.parse(text.replace("P.compute_root();", "")))
    program = collage.parse(text).compile(targets="native", database=os.path.join(folder, "costs.db"))
    random = np.random.default_rng(5)
    x, w = random.standard_normal((5, 6), np.float32), random.standard_normal((3, 8, 2), np.float32)
    calls.clear()
    np.testing.assert_allclose(program(x, w), np.einsum("ikr,kjr->ij", x.reshape(5, 3, 2), np.exp(w)), rtol=1e-4, atol=1e-5)
    assert calls == [4] * 30, calls
    refused("intrinsic of the user's", lambda: program.save(os.path.join(folder, "p.collage")))


def main(arguments):
    return built_package.run([check_tiles, check_intrinsics], arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
