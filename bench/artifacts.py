"""What programs as files cost: compiles models to artifacts, runs each in processes of its own, and checks bits, start-up and memory.

    python bench/artifacts.py MODEL.onnx... [-o DIR] [--db FILE] [--threads N] [--runs 5] [--collage build/release/collage] [-- FLAG...]

Flags behind `--` are compile's (`--targets onednn`). One line a model, of the run whose start-up is the median one:

    bits       whether every output is equal in every bit to that of the plan that was saved. `collage compile --save-outputs` gives
               these: without `--frozen-costs` another `collage run` of the model may measure, and choose another plan
    load       milliseconds from opening the file to a program that can run, in a fresh process, the file in the system's cache
    map        of these, opening the file and mapping what is read of it
    check      of these, comparing what is read with its checksums
    rest       load less map: at most --start
    resident   MB that loading and the first run took, and pages of the file that are in memory; libraries and inputs left out
    packed, arena   MB of constants in their final form, and of intermediate tensors: resident is at most --memory times both
               together, or 8 MB above, which code and descriptions of kernels may take
    file, model     MB of the artifact, and of the model with its external data

Exit status: 0 all holds, 1 something does not, or a model cannot be compiled to a file.
"""

import argparse
import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..")
LEAST = 8e6  # bytes above weights and arena that any program may take
COLUMNS = ("bits", "load", "map", "check", "rest", "resident", "packed", "arena", "ratio", "file", "model")


def call(*arguments):
    """Runs the command; its error, or None."""
    result = subprocess.run(arguments, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return None if result.returncode == 0 else result.stderr.strip() or f"exit status {result.returncode}"


def same_files(one, other):
    """Whether two folders hold files of the same names and contents, at least one."""
    names = sorted(os.listdir(one))
    return bool(names) and names == sorted(os.listdir(other)) and filecmp.cmpfiles(one, other, names, shallow=False)[0] == names


def model_bytes(path):
    data = path + ".data"
    return os.path.getsize(path) + (os.path.getsize(data) if os.path.exists(data) else 0)


def judge(figures, same, start, memory):
    """What of the figures does not hold, in words."""
    held = figures["packed_bytes"] + figures["arena_bytes"]
    wrong = []
    if not same:
        wrong.append("other bits than the plan it came from")
    if (rest := figures["load_ms"] - figures["map_ms"]) > start:
        wrong.append(f"start-up takes {rest:.1f} ms beyond mapping, not {start:g}")
    if (resident := figures["resident_bytes"]) > max(memory * held, held + LEAST):
        wrong.append(f"{resident / 1e6:.1f} MB resident, not {memory:g} times {held / 1e6:.1f}")
    return wrong


def measure(model, folder, options):
    """(Figures of the run whose start-up is the median one, whether all runs gave the plan's bits); or an error in words."""
    name = os.path.splitext(os.path.basename(model))[0]
    artifact = os.path.join(folder, name + ".collage")
    expected, given, report = (os.path.join(folder, f"{name}.{kind}") for kind in ("expected", "given", "json"))
    compiling = [*options.flags]
    compiling += ["--db", options.db] if options.db else []
    compiling += ["--threads", str(options.threads)] if options.threads else []
    shutil.rmtree(expected, ignore_errors=True)
    if error := call(options.collage, "compile", model, "-o", artifact, "--save-outputs", expected, *compiling):
        return error
    found, same = [], True
    for _ in range(options.runs + 1):  # the first brings the file into the system's cache
        shutil.rmtree(given, ignore_errors=True)
        if error := call(options.collage, "run", artifact, "--save-outputs", given, "--json", report):
            return error
        with open(report) as file:
            found.append(json.load(file)["artifact"])
        same = same and same_files(expected, given)
    return sorted(found[1:], key=lambda figures: figures["load_ms"] - figures["map_ms"])[options.runs // 2], same


def row(name, width, cells):
    return f"{name:{width}}" + "".join(f" {cell:>8}" for cell in cells)


def cells(figures, same, model):
    held = figures["packed_bytes"] + figures["arena_bytes"]
    megabytes = [f"{figures[key] / 1e6:.1f}" for key in ("resident_bytes", "packed_bytes", "arena_bytes")]
    times = [f"{figures[key]:.1f}" for key in ("load_ms", "map_ms", "check_ms")]
    return ["same" if same else "OTHER", *times, f"{figures['load_ms'] - figures['map_ms']:.1f}", *megabytes,
            f"{figures['resident_bytes'] / max(held, 1):.2f}", f"{figures['bytes'] / 1e6:.1f}", f"{model_bytes(model) / 1e6:.1f}"]


def run(options, folder):
    failures = 0
    width = max(len(os.path.basename(model)) for model in options.models)
    print(row("", width, COLUMNS))
    for model in options.models:
        name = os.path.basename(model)
        found = measure(model, folder, options)
        if isinstance(found, str):
            failures += 1
            print(f"{name:{width}}  {found}", flush=True)
            continue
        print(row(name, width, cells(*found, model)), flush=True)
        for wrong in judge(*found, options.start, options.memory):
            failures += 1
            print(f"{'':{width}}  WRONG: {wrong}", flush=True)
    return 1 if failures else 0


def main():
    arguments = sys.argv[1:]
    flags = arguments[arguments.index("--") + 1:] if "--" in arguments else []
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("models", nargs="+", metavar="MODEL.onnx")
    parser.add_argument("-o", "--output", metavar="DIR", help="keep artifacts and outputs here (default: nowhere)")
    parser.add_argument("--db", help="the cost database (default: in the cache folder)")
    parser.add_argument("--threads", type=int, help="of the programs (default: this process's cores)")
    parser.add_argument("--runs", type=int, default=5, help="fresh processes a model (default 5)")
    parser.add_argument("--start", type=float, default=50, help="milliseconds that loading may take beyond mapping (default 50)")
    parser.add_argument("--memory", type=float, default=1.15, help="times weights and arena that may be resident (default 1.15)")
    parser.add_argument("--collage", default=os.path.join(ROOT, "build", "release", "collage"))
    options = parser.parse_args(arguments[:len(arguments) - len(flags) - 1] if "--" in arguments else arguments)
    options.flags = flags
    if options.output:
        os.makedirs(options.output, exist_ok=True)
        return run(options, options.output)
    with tempfile.TemporaryDirectory() as folder:
        return run(options, folder)


if __name__ == "__main__":
    sys.exit(main())
