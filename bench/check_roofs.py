"""Looks for kernels that are faster than the machine's peaks allow, in reports of `collage bench --json FILE`.

    python bench/check_roofs.py REPORT.json... [--most 1.05]

A kernel that takes less than its roof (docs/cost-model.md) shows a mistake of the model of that roof, or peaks that were measured on a
busy machine. Prints such kernels, and one line a report with the largest share. Exit status: 0 none is above, 1 some are, 2 a
report holds no roofs.
"""

import argparse
import json
import sys


def shares(report):
    """[(share of the roof, kernel)] of what was measured, the largest first."""
    found = [(kernel["roof"]["least_ms"] / kernel["cost_ms"]["median"], kernel) for kernel in report["kernels"]
             if "roof" in kernel and kernel["cost_ms"] and kernel["cost_ms"]["median"] > 0]
    return sorted(found, key=lambda entry: -entry[0])


def main():
    parser = argparse.ArgumentParser(description="Find kernels above the roof of the machine that ran them.")
    parser.add_argument("reports", nargs="+", metavar="REPORT.json")
    parser.add_argument("--most", type=float, default=1.05, help="share of its roof that a kernel may reach (default 1.05)")
    options = parser.parse_args()
    above = 0
    for path in options.reports:
        with open(path) as file:
            report = json.load(file)
        found = shares(report)
        if not found:
            parser.error(f"{path}: no kernel has a roof: write it with collage bench --json")
        for share, kernel in found:
            if share <= options.most:
                break
            above += 1
            print(f"{path}: {kernel['name']} reaches {share:.0%} of what {kernel['roof']['bound']} allows: "
                  f"{kernel['cost_ms']['median']:.4f} ms, {kernel['roof']['least_ms']:.4f} at least; {kernel['variant']}")
        share, kernel = found[0]
        print(f"{report['model']}: {len(found)} kernels, at most {share:.0%} of a roof ({kernel['name']}, {kernel['roof']['bound']})")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
