"""README's results table, from reports of `collage bench --compare onnxruntime,openvino --json FILE`.

    python bench/results_table.py REPORT.json...
"""

import argparse
import json
import sys

PEERS = ("onnxruntime", "openvino")


def milliseconds(value):
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def row(report):
    own = report["latency_ms"]["median"]
    peers = [report.get("peers", {}).get(name, {}).get("median") for name in PEERS]
    measured = [value for value in peers if value is not None]
    singles = report["single_backend_ms"]
    best = min(singles, key=singles.get, default=None)
    cells = [report["model"].removesuffix(".onnx"), milliseconds(own), *("" if v is None else milliseconds(v) for v in peers),
             f"{min(measured) / own:.2f}x" if measured else "", f"{best} {milliseconds(singles[best])}" if best else "none"]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description="Print a markdown table of benchmark reports.")
    parser.add_argument("reports", nargs="+", metavar="REPORT.json")
    print("| model | Collage | ONNX Runtime | OpenVINO | speed-up | best single backend |\n| --- | --- | --- | --- | --- | --- |")
    for path in parser.parse_args().reports:
        with open(path) as file:
            print(row(json.load(file)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
