"""check_roofs.py tells reports with a kernel above its roof from those without.

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import json
import os
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tests"))

import checks


def kernel(name, least, median, **more):
    return {"name": name, "variant": "direct", "cost_ms": {"median": median}, "roof": {"least_ms": least, "bound": "L2"}} | more


def check_roofs(folder, kernels, *flags):
    path = os.path.join(folder, "report.json")
    with open(path, "w") as file:
        json.dump({"model": "net.onnx", "kernels": kernels}, file)
    return subprocess.run([sys.executable, os.path.join(ROOT, "bench", "check_roofs.py"), path, *flags], capture_output=True, text=True)


def check_below(folder):
    """At most 105% is noise; kernels that nobody measured or that have no roof do not count."""
    result = check_roofs(folder, [kernel("a", 1.04, 1), kernel("b", 0.5, 1), kernel("c", 9, 1, cost_ms=None),
                                  {"name": "d", "variant": "", "cost_ms": {"median": 1}}])
    assert result.returncode == 0, result.stdout
    assert result.stdout == "net.onnx: 2 kernels, at most 104% of a roof (a, L2)\n", result.stdout


def check_above(folder):
    result = check_roofs(folder, [kernel("a", 1.06, 1), kernel("b", 0.5, 1), kernel("c", 5, 2)])
    assert result.returncode == 1, result.stdout
    first, second, last = result.stdout.splitlines()
    assert "c reaches 250% of what L2 allows: 2.0000 ms, 5.0000 at least" in first and "a reaches 106%" in second, result.stdout
    assert last.startswith("net.onnx: 3 kernels, at most 250%"), last
    assert check_roofs(folder, [kernel("a", 1.06, 1)], "--most", "1.1").returncode == 0


def check_without_roofs(folder):
    assert check_roofs(folder, []).returncode == 2
    assert check_roofs(folder, [{"name": "d", "variant": "", "cost_ms": {"median": 1}}]).returncode == 2


CHECKS = (check_below, check_above, check_without_roofs)


if __name__ == "__main__":
    sys.exit(checks.run(CHECKS, sys.argv[1:]))
