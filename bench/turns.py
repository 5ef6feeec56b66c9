"""Programs that take turns on one machine, and how a benchmark of them ends."""

import json
import statistics
import sys
import time


def blocks(contenders, inputs, block, enough, between=None):
    """Seconds of single runs by contender, one list a turn, until `enough(turns)`. Every turn gives each contender runs for `block` seconds, in an order that
    rotates, after `between` and a run that brings its own weights into the caches.
    """
    turns, order = {name: [] for name in contenders}, list(contenders)
    while not enough(turns):
        order.append(order.pop(0))
        for name in order:
            samples, run = [], contenders[name]
            if between is not None:
                between()
            run(*inputs)
            stop = time.perf_counter() + block
            while not samples or time.perf_counter() < stop:
                begin = time.perf_counter()
                run(*inputs)
                samples.append(time.perf_counter() - begin)
            turns[name].append(samples)
    return turns


def until(seconds, least=1):
    """For `blocks`: after so many seconds from now, and so many turns."""
    end = time.perf_counter() + seconds
    return lambda turns: time.perf_counter() >= end and all(len(of_one) >= least for of_one in turns.values())


def medians(turns):
    """Of each block."""
    return {name: [statistics.median(samples) for samples in of_one] for name, of_one in turns.items()}


def ratio(medians_of, name, other):
    """The median, turn by turn, of what one takes of the other."""
    return statistics.median(a / b for a, b in zip(medians_of[name], medians_of[other]))


def finish(figures, path, wrong):
    """Writes the figures where a path is given, and says what is wrong; the exit status."""
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
    for line in wrong:
        print(f"WRONG {line}", file=sys.stderr)
    return 1 if wrong else 0
