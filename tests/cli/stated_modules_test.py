"""A compiled workload as a module that states its kernels compiles again to the same plan and the same bits, with no costs; and so
does the model itself by the costs that the first run left.

    python tests/cli/stated_modules_test.py [NAME...]

Of reduced workloads (long_stated_modules_test.py takes all ten). Prints one line a failure, then "N passed, N failed"; exits with 1 if
anything failed.
"""

import functools
import json
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
    """What runs, as what, what is converted between, and where in memory everything is when: the steps in their order."""
    kernels = sorted((k["name"], k["target"], k["variant"]) for k in report["kernels"])
    return kernels, sorted((c["name"], c["from"], c["to"]) for c in report["conversions"]), report["arena"]


def bits(bench, folder):
    return [values.tobytes() for values in bench.outputs(folder).values()]


def check(name, bench):
    model = generate.generate(name, bench.folder, small=True)[0]
    bench.run("compile", model, "--emit", "module", "-o", "stated.relay", "--threads", "2", "--effort", "fast",
              "--json", "first.json", "--save-outputs", "first")
    with open(bench.path("first.json")) as file:
        first = json.load(file)
    for database in ("none", "that there is"):
        again, _ = bench.report("run", "stated.relay", "--save-outputs", "again", "--threads", "2", "--db", "own.db", "--frozen-costs")
        assert again["search"]["light"] and plan(again) == plan(first), f"another plan, with {database}"
        assert bits(bench, "again") == bits(bench, "first"), f"other bits, with {database}"
    again, _ = bench.report("run", model, "--save-outputs", "model", "--threads", "2", "--effort", "fast", "--frozen-costs")
    assert not again["search"]["light"] and plan(again) == plan(first), "another plan of the model itself"
    assert bits(bench, "model") == bits(bench, "first"), "other bits of the model itself"
    bench.run("verify", model, "--threads", "2", "--effort", "fast", "--frozen-costs")


def main(names):
    with tempfile.TemporaryDirectory() as shared:
        cases = [(name, functools.partial(check, name)) for name in names]
        return checks.run(cases, prepare=lambda folder: workbench.Bench(folder, os.path.join(shared, "cache")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or NAMES))
