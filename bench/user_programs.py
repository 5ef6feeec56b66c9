"""Tensor programs that users write, against the same computation in operators: Collage's native backend computes both, in turns.

    python bench/user_programs.py [NAME...] [--threads N] [--duration 5] [--limit 1.2] [--json FILE]

The modules are those of tests/modules: a program with operators around it, whose parts native may compute in one kernel (fused) or has to compute in one each
(by a configuration). Everything is compiled with --effort max, so that each way is the fastest that was measured. Every turn gives each contender
a block of runs, in an order that rotates; ratios are medians of those turn by turn. Leave the machine alone meanwhile.

Exit status 1: outputs differ by more than 1e-3 of the largest value, or the fused program takes more than --limit times what the operators do, or more
than the parts one by one.
"""

import argparse
import os
import statistics
import sys
import tempfile

import numpy as np

import collage
import turns

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "modules"))
import modules

BLOCK = 0.1  # seconds of runs in a turn
WAYS = {"operators": True, "fused": False, "parts": False}  # whether in operators


def compiled(name, folder, options):
    programs = {}
    for way, operators in WAYS.items():
        where = {"config": modules.parts_config(folder)} if way == "parts" else {"targets": "native"}
        path = os.path.join(folder, f"{name.replace(' ', '_')}_{way}.relay")
        with open(path, "w", encoding="utf-8") as file:
            file.write(modules.text(name, modules.SIZES[name], operators))
        programs[way] = collage.load(path).compile(**where, threads=options.threads, effort="max",
                                                    database=os.path.join(folder, "costs.db"))
    return programs


def difference(ours, theirs):
    return float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))


def compare(name, folder, options):
    programs = compiled(name, folder, options)
    random = np.random.default_rng(0)
    inputs = [(random.random(info.shape) - 0.5).astype("float32") for info in programs["fused"].inputs]
    outputs = {way: np.asarray(program(*inputs)) for way, program in programs.items()}
    took = turns.medians(turns.blocks(programs, inputs, BLOCK, turns.until(options.duration * len(programs))))
    return {"module": name, "milliseconds": {way: 1e3 * statistics.median(took[way]) for way in took},
            "of_operators": turns.ratio(took, "fused", "operators"), "of_parts": turns.ratio(took, "fused", "parts"),
            "difference": max(difference(outputs[way], outputs["operators"]) for way in ("fused", "parts")),
            "kernels": {way: [kernel.get("variant") for kernel in program.report["kernels"]] for way, program in programs.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", default=[], metavar="NAME", help=", ".join(modules.SIZES))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--duration", type=float, default=5, help="seconds of runs a contender")
    parser.add_argument("--limit", type=float, default=1.2)
    parser.add_argument("--json", help="write the figures here")
    options = parser.parse_args()
    results, wrong = [], []
    print("| module | operators ms | fused ms | parts ms | fused / operators | fused / parts |\n| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or modules.SIZES:
            result = compare(name, folder, options)
            results.append(result)
            ms = result["milliseconds"]
            print(f"| {name} | {ms['operators']:.3f} | {ms['fused']:.3f} | {ms['parts']:.3f} | {result['of_operators']:.2f} | {result['of_parts']:.2f} |",
                  flush=True)
            print(f"{name}: {result['kernels']}", file=sys.stderr, flush=True)
            if not result["difference"] <= 1e-3:
                wrong.append(f"{name}: outputs differ by {result['difference']:.1e}")
            if result["of_operators"] > options.limit or result["of_parts"] > 1:
                wrong.append(f"{name}: too slow")
    return turns.finish({"threads": options.threads, "results": results}, options.json, wrong)


if __name__ == "__main__":
    sys.exit(main())
