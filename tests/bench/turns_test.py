"""turns.py lets contenders run in an order that rotates, and tells figures and what is wrong.

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import contextlib
import io
import json
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "bench")]

import checks
import turns


def check_turns(folder):
    """A block of no seconds is a run; before it there is one that does not count."""
    runs = []
    contenders = {name: (lambda value, name=name: runs.append(name + value)) for name in "abc"}
    samples = turns.blocks(contenders, ["!"], 0, lambda done: len(done["c"]) == 2, between=lambda: runs.append("-"))
    assert runs == ["-", "b!", "b!", "-", "c!", "c!", "-", "a!", "a!", "-", "c!", "c!", "-", "a!", "a!", "-", "b!", "b!"], runs
    assert [[len(block) for block in samples[name]] for name in "abc"] == [[1, 1]] * 3, samples


def check_least(folder):
    enough = turns.until(0, least=2)
    assert not enough({"a": [], "b": []}) and not enough({"a": [1, 1], "b": [1]}) and enough({"a": [1, 1], "b": [1, 1]})
    assert not turns.until(1e6)({"a": [1, 1]})


def check_figures(folder):
    took = turns.medians({"a": [[3, 1, 2], [8]], "b": [[1], [2]]})
    assert took == {"a": [2, 8], "b": [1, 2]} and turns.ratio(took, "a", "b") == 3, took


def check_finish(folder):
    path = os.path.join(folder, "figures.json")
    with contextlib.redirect_stderr(io.StringIO()) as told:
        assert turns.finish({"gain": 2}, path, ["a: slow"]) == 1 and turns.finish({}, None, []) == 0
    assert told.getvalue() == "WRONG a: slow\n", told.getvalue()
    with open(path) as file:
        assert json.load(file) == {"gain": 2}


if __name__ == "__main__":
    sys.exit(checks.run([check_turns, check_least, check_figures, check_finish], sys.argv[1:]))
