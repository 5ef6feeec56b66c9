"""Text over symbols, from the command line.

    python tests/cli/cli_symbols_test.py
"""

import os
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import command
import tiny_models
from workbench import Bench


def check_symbols(bench):
    """Text over symbols is run, verified and saved for sizes that --dim, --shapes or inputs give."""
    tiny_models.write(bench.folder, "family.relay",
                      "def @main(%x: Tensor[(n, 8), float32], %y: Tensor[(n, m), float32]) -> Tensor[(n, 8 + m), float32] {\n"
                      "  concatenate((exp(%x), %y), axis=1)\n}\n")
    np.save(bench.path("x.npy"), np.ones((300, 8), np.float32))
    np.save(bench.path("y.npy"), np.ones((300, 500), np.float32))
    run = lambda *flags: command.run([flags[0], "family.relay", "--targets", "native", *flags[1:]], bench.folder, cache=bench.cache)
    verified = run("verify", "--dim", "n=5", "--dim", "m=3")
    assert verified.returncode == 0, verified
    assert run("run", "--shapes", "x=5x8", "--shapes", "y=5x3").returncode == 0
    by_inputs = run("run", "--inputs", "x=x.npy", "--inputs", "y=y.npy")
    assert by_inputs.returncode == 0 and "output 'output0': float32 (300, 508)" in by_inputs.stdout, by_inputs
    assert run("verify", "--inputs", "x=x.npy", "--inputs", "y=y.npy").returncode == 0
    saved = run("compile", "-o", "family.collage", "--bucket", "n=4,8", "--bucket", "m=2")
    assert saved.returncode == 0 and "2 specialisations" in saved.stdout, saved
    again = command.run(["run", "family.collage"], bench.folder, cache=bench.cache)
    assert again.returncode == 0, again
    for flags, status, message in ((("run",), 3, "input 'x': dimension 'n' has no value: give one"),
                                   (("run", "--dim", "n=5", "--dim", "k=3"), 2, "a value is given for symbol k")):
        refused = run(*flags)
        assert refused.returncode == status and message in refused.stderr, refused


CHECKS = (check_symbols,)

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as shared:
        sys.exit(checks.run(CHECKS, sys.argv[1:], lambda folder: Bench(folder, os.path.join(shared, "cache"))))
