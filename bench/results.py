"""The results of docs/results.md: runs the ten workloads beside ONNX Runtime and OpenVINO, and prints what the page says of them.

    python bench/results.py -o DIR [--sweeps 1] [--duration 3] [--models NAME,NAME] [--effort fast] [--collage build/release/collage]
    python bench/results.py -o DIR --print-only

Models are written to DIR/models. Reports go to DIR/matrix_unit (default flags, where the processor has one), DIR/vectors (`--exclude
amx`, or the default flags where there is none) and DIR/strict (`--accuracy strict`); costs are measured where the cost database
lacks them. With several sweeps the models take turns, and of each the sweep whose speed-up is the median one counts. Reports that are there
already are not made again. Leave the machine alone meanwhile: bench waits for quiet moments, but not for ever.
"""

import argparse
import datetime
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..")
sys.path[:0] = [HERE, os.path.join(ROOT, "models")]

import results_table

KINDS = {"matrix_unit": [], "vectors": ["--exclude", "amx"], "strict": ["--accuracy", "strict"]}
TITLES = {"matrix_unit": "With the matrix unit", "vectors": "Without a matrix unit"}


def bench(options, model, kind, flags, sweep):
    """Writes one report, unless it is there."""
    folder = os.path.join(options.output, kind, f"sweep{sweep}")
    report = os.path.join(folder, f"{model}.json")
    if os.path.exists(report):
        return report
    os.makedirs(folder, exist_ok=True)
    command = [options.collage, "bench", os.path.join(options.output, "models", f"{model}.onnx"), "--compare",
               "onnxruntime,openvino", "--duration", str(options.duration), "--effort", options.effort, "--json", report, *flags]
    print("$ " + " ".join(command), file=sys.stderr, flush=True)
    subprocess.run(command, check=True, stdout=sys.stderr, env=os.environ | {"COLLAGE_PYTHON": sys.executable})
    return report


def run(options):
    import generate

    names = options.models.split(",") if options.models else list(generate.WORKLOADS)
    for name in names:
        if not os.path.exists(os.path.join(options.output, "models", f"{name}.onnx")):
            generate.generate(name, os.path.join(options.output, "models"))
    for sweep in range(options.sweeps):
        for name in names:
            first = results_table.read(bench(options, name, "default", [], sweep))
            has_unit = any(target.split()[0] == "amx" for target in first["targets"])
            for kind, flags in KINDS.items():
                if kind == "matrix_unit" and not has_unit:
                    continue
                same = kind == "matrix_unit" or (kind == "vectors" and not has_unit)
                link(options, name, kind, sweep) if same else bench(options, name, kind, flags, sweep)


def link(options, model, kind, sweep):
    """A report that was made with default flags, under another kind too."""
    folder = os.path.join(options.output, kind, f"sweep{sweep}")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{model}.json")
    if not os.path.lexists(path):
        os.symlink(os.path.join("..", "..", "default", f"sweep{sweep}", f"{model}.json"), path)


def of_all_sweeps(folder):
    """{model: the report of the sweep whose speed-up is the median one}."""
    found = {}
    for sweep in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        for model, report in results_table.read_folder(os.path.join(folder, sweep)).items():
            found.setdefault(model, []).append(report)
    return {model: sorted(reports, key=lambda report: results_table.speed_up(report) or 0)[len(reports) // 2]
            for model, reports in found.items()}


def text(output, commit, date):
    """What docs/results.md says: where these figures come from, and the tables."""
    kinds = {kind: of_all_sweeps(os.path.join(output, kind)) for kind in KINDS}
    some = next((report for reports in kinds.values() for report in reports.values()), None)
    if some is None:
        raise SystemExit(f"{output} holds no reports")
    # The name that the processor gives itself, without the fingerprint of its instructions.
    processor = some["env"]["cpu"].rsplit(" ", 1)[0]
    lines = [f"Commit {commit}, {date}, {processor}, {some['env']['threads']} threads.", ""]
    for kind, title in TITLES.items():
        if kinds[kind]:
            lines += [f"{title}:", "", results_table.table(list(kinds[kind].values()), kinds["strict"]), ""]
    return "\n".join(lines)


def commit_of_sources():
    def git(*words):
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True).stdout.strip()

    return (git("rev-parse", "--short", "HEAD") or "unknown") + (" with changes" if git("status", "--porcelain") else "")


def main():
    parser = argparse.ArgumentParser(description="Run the workloads and print the tables of docs/results.md.")
    parser.add_argument("-o", "--output", required=True, metavar="DIR")
    parser.add_argument("--sweeps", type=int, default=1, help="passes over all models (default 1)")
    parser.add_argument("--duration", type=float, default=3, help="seconds of each runtime's runs (default 3)")
    parser.add_argument("--models", help="comma separated (default: all ten)")
    parser.add_argument("--effort", default="default", help="that kernels are sought with (default: the command's own)")
    parser.add_argument("--collage", default=os.path.join(ROOT, "build", "release", "collage"))
    parser.add_argument("--print-only", action="store_true", help="from the reports that are there")
    options = parser.parse_args()
    if not options.print_only:
        run(options)
    print(text(options.output, commit_of_sources(), datetime.date.today().isoformat()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
