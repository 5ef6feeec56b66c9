"""results.py makes the tables of docs/results.md of reports: which sweep counts, what stands in which column; README's chart is drawn
from these tables.

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import json
import os
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "bench")]

import checks
import results
import results_chart


def report(model, own, peers, ratio, verdict="faster", single=None):
    speed_up = {"median": ratio, "low": ratio - 0.1, "high": ratio + 0.1, "turns": 10, "verdict": verdict}
    difference = {"max_abs": 1e-5, "max_rel": 3e-6, "within": True}
    return {"model": f"{model}.onnx", "env": {"cpu": "Some Processor 9 deadbeef", "threads": 2}, "latency_ms": {"median": own},
            "targets": ["amx", "reference"], **({"best_single_backend": single} if single else {}),
            "peers": {name: {"median": ms, "speed_up": speed_up, "difference": difference} for name, ms in peers.items()}}


def save(folder, kind, sweep, entry):
    path = os.path.join(folder, kind, f"sweep{sweep}")
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, entry["model"].removesuffix(".onnx") + ".json"), "w") as file:
        json.dump(entry, file)


def check_tables(folder):
    """A table with and one without the matrix unit; of three sweeps the middle one; what is undecided says so."""
    for sweep, (own, ratio) in enumerate(((10.0, 2.0), (9.0, 2.2), (12.0, 1.7))):
        save(folder, "matrix_unit", sweep, report("bert", own, {"onnxruntime": 20.0, "openvino": 25.0}, ratio,
                                              single={"name": "amx", "median": 9.9, "speed_up": {"median": 0.99}}))
    save(folder, "vectors", 0, report("bert", 18.0, {"onnxruntime": 20.0, "openvino": 25.0}, 1.05, "moved"))
    save(folder, "strict", 0, report("bert", 18.5, {}, 1))
    text = results.text(folder, "abc1234", "2026-01-02")
    assert text.startswith("Commit abc1234, 2026-01-02, Some Processor 9, 2 threads.\n"), text
    first, second = text.index("With the matrix unit:"), text.index("Without a matrix unit:")
    assert "| bert | 10.0 | 18.5 | 20.0 | 25.0 | 2.00x | 1.90–2.10 | 3e-06 | amx 9.90, 0.99x |" in text[first:second], text
    assert "| bert | 18.0 | 18.5 | 20.0 | 25.0 | 1.05x | 0.95–1.15 moved | 3e-06 | none |" in text[second:], text
    assert "| geometric mean | | | | | 2.00x | | | |" in text[first:second], text


def check_without_unit(folder):
    """A machine without one has one table."""
    save(folder, "vectors", 0, report("bert", 0.5, {"openvino": 0.6}, 1.2))
    text = results.text(folder, "abc", "today")
    assert "With the" not in text and "| bert | 0.500 |  |  | 0.600 | 1.20x |" in text, text


def check_empty(folder):
    result = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "results.py"), "-o", folder, "--print-only"], capture_output=True, text=True)
    assert result.returncode != 0 and "holds no reports" in result.stderr, result


def check_chart(folder):
    """docs/results.svg is what results_chart.py draws of docs/results.md."""
    with open(results_chart.PAGE, encoding="utf-8") as page, open(results_chart.CHART, encoding="utf-8") as chart:
        tables = results_chart.tables(page.read())
        assert results_chart.draw(tables) == chart.read(), "run python bench/results_chart.py"
    assert [len(rows) for rows in tables.values()] == [10, 10], tables
    drawn = results_chart.draw({"One": {"bert": ("2.50", 1.5)}})
    assert ">1.50x, 2.50 ms<" in drawn and f'width="{round(1.5 * results_chart.PER_UNIT)}"' in drawn, drawn


CHECKS = (check_chart, check_tables, check_without_unit, check_empty)


if __name__ == "__main__":
    sys.exit(checks.run(CHECKS, sys.argv[1:]))
