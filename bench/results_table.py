"""The table of docs/results.md, from reports of `collage bench --compare onnxruntime,openvino --json FILE`.

    python bench/results_table.py REPORT.json... [--strict DIR]

DIR holds reports of the same names, written with --accuracy strict. bench/results.py makes all of them.
"""

import argparse
import json
import math
import os
import sys

PEERS = ("onnxruntime", "openvino")
HEAD = ("| model | Collage | strict | ONNX Runtime | OpenVINO | speed-up | 95% | difference | best single backend |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
UNDECIDED = {"moved": " moved", "few turns": " few turns"}


def milliseconds(value):
    return "" if value is None else f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def faster_peer(report):
    """Of the other runtimes the one with the lower median, of those whose outputs agree; None where there is none."""
    peers = [report.get("peers", {}).get(name, {}) for name in PEERS]
    return min((peer for peer in peers if "speed_up" in peer), key=lambda peer: peer["median"], default=None)


def speed_up(report):
    peer = faster_peer(report)
    return None if peer is None else peer["speed_up"]["median"]


def row(report, strict=None):
    peers = [report.get("peers", {}).get(name, {}).get("median") for name in PEERS]
    best, faster = report.get("best_single_backend"), faster_peer(report)
    cells = [report["model"].removesuffix(".onnx"), milliseconds(report["latency_ms"]["median"]),
             milliseconds(strict["latency_ms"]["median"]) if strict else "", *map(milliseconds, peers)]
    if faster is None:
        cells += ["", "", ""]
    else:
        ratio = faster["speed_up"]
        cells += [f"{ratio['median']:.2f}x", f"{ratio['low']:.2f}–{ratio['high']:.2f}{UNDECIDED.get(ratio['verdict'], '')}",
                  f"{faster['difference']['max_rel']:.0e}"]
    cells.append(f"{best['name']} {milliseconds(best['median'])}, {best['speed_up']['median']:.2f}x" if best else "none")
    return "| " + " | ".join(cells) + " |"


def table(reports, strict):
    """Markdown of reports; `strict`: {model: report}."""
    lines = [HEAD] + [row(report, strict.get(report["model"])) for report in reports]
    ratios = [ratio for ratio in map(speed_up, reports) if ratio]
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines.append(f"| geometric mean | | | | | {mean:.2f}x | | | |")
    return "\n".join(lines)


def read(path):
    with open(path) as file:
        return json.load(file)


def read_folder(folder):
    """{model: report} of a folder; empty where there is none."""
    if not folder or not os.path.isdir(folder):
        return {}
    reports = [read(os.path.join(folder, name)) for name in sorted(os.listdir(folder)) if name.endswith(".json")]
    return {report["model"]: report for report in reports}


def main():
    parser = argparse.ArgumentParser(description="Print a markdown table of benchmark reports.")
    parser.add_argument("reports", nargs="+", metavar="REPORT.json")
    parser.add_argument("--strict", metavar="DIR", help="reports of the same models with --accuracy strict")
    options = parser.parse_args()
    print(table([read(path) for path in options.reports], read_folder(options.strict)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
