"""The second family of models on all targets, and all models on one backend at a time (the reference takes what it leaves).

    python tests/cli/long_workloads_test.py [BACKEND...]

As workloads_test.py otherwise.
"""

import os
import re
import sys
import tempfile

import command
from workloads_test import generate, run_all


def available_backends():
    with tempfile.TemporaryDirectory() as folder:
        printed = command.run(["targets"], folder, cache=os.path.join(folder, "cache")).stdout
    return [name for name in re.findall(r"^(\w+) +available", printed, re.MULTILINE) if name != "reference"]


def main():
    chosen = sys.argv[1:]
    cases = [] if chosen else [(name, None) for name in generate.EXPORTS] + [(name, "reference") for name in generate.WORKLOADS]
    for backend in chosen or available_backends():
        cases += [(name, f"{backend},reference") for name in generate.WORKLOADS | generate.EXPORTS]
    return run_all(cases)


if __name__ == "__main__":
    sys.exit(main())
