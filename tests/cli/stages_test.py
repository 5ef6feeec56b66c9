"""The module after every stage of a compilation, read again, compiles to the same plan and the same bits.

    python tests/cli/stages_test.py [NAME...]

Of reduced workloads (long_stages_test.py takes all ten): the model as imported, after each pass, and with its kernels stated
(compile --emit module), which needs no costs. Prints one line a model, then "N passed, N failed"; exits with 1 if anything
failed.
"""

import functools
import glob
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [HERE, os.path.join(HERE, ".."), os.path.join(ROOT, "models")]

import checks
import generate
import workbench

NAMES = ("mobilenet_v2", "bert")


def plan(report):
    """What runs, as what, and what is converted between."""
    kernels = [(k["name"], k["target"], k["variant"], k["inputs"], k["outputs"]) for k in report["kernels"]]
    return kernels, report["conversions"]


def compiled(bench, model, *flags):
    """The plan and the bits of the results."""
    report, _ = bench.report("run", model, "--save-outputs", "out", "--threads", "2", *flags)
    return plan(report), [values.tobytes() for values in bench.outputs("out").values()]


def check(name, bench):
    model = generate.generate(name, bench.folder, small=True)[0]
    careless = ("--effort", "fast", "--patience", "0")
    bench.run("run", model, "--threads", "2", *careless, COLLAGE_DUMP=bench.path("stages"))
    known = (*careless, "--frozen-costs")
    first = compiled(bench, model, *known)
    stages = sorted(glob.glob(bench.path("stages", "[0-9]*.relay")))
    assert stages, "nothing was dumped"
    for stage in stages:
        again = compiled(bench, stage, *known)
        assert again[1] == first[1], f"{os.path.basename(stage)}: other bits"
        assert again[0] == first[0], f"{os.path.basename(stage)}: another plan"
    bench.run("compile", model, "--emit", "module", "-o", "stated.relay", "--threads", "2", *known)
    again = compiled(bench, "stated.relay", "--db", "empty.db", "--frozen-costs")
    assert again[1] == first[1], "stated kernels: other bits"
    assert [k[:3] for k in again[0][0]] == [k[:3] for k in first[0][0]], "stated kernels: another plan"


def main(names):
    with tempfile.TemporaryDirectory() as shared:
        cases = [(name, functools.partial(check, name)) for name in names]
        return checks.run(cases, prepare=lambda folder: workbench.Bench(folder, os.path.join(shared, "cache")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or NAMES))
