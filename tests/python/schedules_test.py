"""Programs that bring the schedules that were measured to be fastest, as text of their module."""

import os
import sys

import built_package
import numpy as np

if built_package.BUILT:
    import collage
    from collage import passes


def check_tuned(folder):
    """A program becomes its stages with the fastest schedule, weights stored as that reads them; compiled again it is one kernel."""
    model = collage.parse("""
        program @scale { param A: float32[64, 48]; param B: float32[48, 64]; stage S[i:64, j:64] = sum(k:48) A[i, k] * B[k, j]; result C[i:64, j:64] = S[i, j] * 2.0f; }
        def @main(%x: Tensor[(64, 48), float32], %w: Tensor[(48, 64), float32]) { tanh(@scale(%x, %w)) }""")
    options = {"targets": "native", "threads": 1, "effort": "fast", "database": os.path.join(folder, "tuned.db")}
    assert passes.tune("other", **options)(model).text() == model.text()
    tuned = passes.tune("^scale$", **options)(model)
    text = tuned.text()
    assert "program @scale" in text and "schedule {" in text and "Primitive=1" in text and "tanh" in text, text
    x, w = np.random.default_rng(1).standard_normal((64, 48), np.float32), np.random.default_rng(2).standard_normal((48, 64), np.float32)
    program = collage.parse(text).compile(**options)
    assert "program(float32, float32)->(float32)" in [kernel["variant"] for kernel in program.report["kernels"]], program.report["kernels"]
    np.testing.assert_allclose(program(x, w), np.tanh(2 * (x @ w)), rtol=1e-4, atol=1e-5)


def main(arguments):
    return built_package.run([check_tuned], arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
