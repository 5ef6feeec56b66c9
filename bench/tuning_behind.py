"""What a served model loses while it is tuned in the background: calls of it one after the other, in windows with tuning and without in turns.

    python bench/tuning_behind.py MODEL.onnx [--seconds 15] [--rounds 3] [--limit 10]

A new cost database. Prints calls a second with and without tuning, the programs that took the served one's place, and how many results differ from the
first program's by more than rounding. Exit status 1: more than --limit percent are lost, or a result is wrong.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import onnx

import collage

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "models")]

from random_inputs import random_inputs


def is_right(outputs, expected):
    """By the scale of each output, as different kernels round differently."""
    return all(np.abs(one - right).max() <= 1e-3 * max(1e-6, np.abs(right).max()) for one, right in zip(outputs, expected))


def window(call, expected, seconds):
    """Calls a second, and how many were wrong."""
    begin = time.perf_counter()
    done = wrong = 0
    while time.perf_counter() < begin + seconds:
        outputs = call()
        done += 1
        wrong += not is_right(outputs, expected)
    return done / (time.perf_counter() - begin), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=10, help="percent")
    options = parser.parse_args()
    inputs = random_inputs(onnx.load(options.model, load_external_data=False), seed=0)
    with tempfile.TemporaryDirectory() as folder:
        model, database = collage.load(options.model), os.path.join(folder, "costs.db")
        served = model.compile(database=database)

        def call():
            outputs = served.run(inputs)
            return [np.array(outputs[info.name]) for info in model.outputs]

        expected = call()
        window(call, expected, 1)
        replaced, rates, wrong = 0, {"alone": [], "tuned": []}, 0

        def replace(better):
            nonlocal replaced
            served.replace(better)
            replaced += 1

        for _ in range(options.rounds):
            rate, bad = window(call, expected, options.seconds)
            rates["alone"].append(rate)
            wrong += bad
            tuning = model.tune(replace, database=database)
            rate, bad = window(call, expected, options.seconds)
            rates["tuned"].append(rate)
            wrong += bad
            tuning.stop()
            tuning.wait()
    # A program that was replaced is faster in every window that follows, so each window counts beside its own neighbour.
    lost = 100 * (1 - statistics.median(tuned / alone for alone, tuned in zip(rates["alone"], rates["tuned"])))
    print(f"{os.path.basename(options.model)}: {statistics.median(rates['alone']):.1f} calls a second, {statistics.median(rates['tuned']):.1f} while tuned: "
          f"{lost:.1f}% lost; replaced {replaced} times, {wrong} wrong")
    return int(lost > options.limit or wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
