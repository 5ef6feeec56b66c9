"""collage tune: what it measures is known afterwards, whatever ends it.

    python tests/cli/cli_tune_test.py [CHECK...]

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import json
import os
import re
import signal
import sys

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import command
import tiny_models
import tuning


def run(folder, *arguments, status=0):
    result = command.run([*arguments], folder, cache=os.path.join(folder, "cache"))
    assert result.returncode == status, f"exit status {result.returncode}: {result.stderr or result.stdout}"
    return result.stdout


def check_tune_then_run(folder):
    """After tuning two models, both run with frozen costs; tuning again measures nothing."""
    onnx.save(tiny_models.small_net(), os.path.join(folder, "a.onnx"))
    onnx.save(tiny_models.small_net(filters=5), os.path.join(folder, "b.onnx"))
    flags = ["--targets", "onednn,reference", "--effort", "fast"]
    first = run(folder, "tune", "a.onnx", "b.onnx", *flags)
    assert re.fullmatch(r"(\w\.onnx  [1-9]\d* measured, .* s\n){2}", first), first
    for name in ("a.onnx", "b.onnx"):
        run(folder, "run", name, *flags, "--frozen-costs", "--json", "report.json")
        with open(os.path.join(folder, "report.json")) as file:
            report = json.load(file)
        assert not report["search"]["light"], "what was tuned is searched"
        assert report["estimates"]["measured"] == report["estimates"]["tried"] == 0, report["estimates"]
    again = run(folder, "tune", "a.onnx", "b.onnx", *flags)
    assert re.fullmatch(r"(\w\.onnx  0 measured, .* s\n){2}", again), again
    run(folder, "tune", "a.onnx", "absent.onnx", *flags, status=3)


def check_effort(folder):
    """Costs of less effort are measured again when more is asked, those of more are taken."""
    onnx.save(tiny_models.small_net(), os.path.join(folder, "net.onnx"))

    def measured(effort, *flags):
        printed = run(folder, "tune", "net.onnx", "--targets", "onednn,reference", "--effort", effort, *flags)
        return int(re.search(r"(\d+) measured", printed).group(1))

    assert measured("fast") > 0
    assert measured("fast") == 0
    assert measured("default", "--frozen-costs") == 0, "frozen costs are taken as they are"
    assert measured("default") > 0
    assert measured("fast") == 0 and measured("default") == 0
    run(folder, "run", "net.onnx", "--effort", "huge", status=2)


def check_interrupted_tune(folder):
    """Ctrl-C: status 130, what is done is kept, and the next run measures the rest only."""
    tune = tuning.Tuning(folder, 50)
    process = tune.start()
    assert tune.signal_after(process, 5, signal.SIGINT), "it ended too early"
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130 and "interrupted: what was measured is kept" in err, (process.returncode, err)
    kept = tune.rows()
    assert 5 <= len(kept) < 50, len(kept)
    printed = tune.finish()
    rows = tune.rows()
    assert kept.items() <= rows.items()
    assert f" {tuning.measurements(rows) - tuning.measurements(kept)} measured" in printed, (printed, len(kept), len(rows))


def check_interrupted_run(folder):
    """Ctrl-C while `run` measures: it goes on with the best so far, and the result is right."""
    tune = tuning.Tuning(folder, 40)
    flags = tune.flags
    tune.flags = [*flags, "--save-outputs", "outputs"]
    process = tune.start("run")
    assert tune.signal_after(process, 3, signal.SIGINT), "it ended too early"
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0 and "interrupted" in err and "kernels" in out, (process.returncode, out, err)
    kept = len(tune.rows())
    tune.flags = [*flags, "--expect", "outputs"]
    tune.finish("verify")
    assert kept < 40 < len(tune.rows()), "verify measured what was left"


def check_kills(folder):
    """Some kills (-9); long_kills_test.py does a hundred."""
    tuning.kill_many_times(folder, 6, 120, lambda number: number * 5 % 40 / 1000)


CHECKS = (check_tune_then_run, check_effort, check_interrupted_tune, check_interrupted_run, check_kills)

if __name__ == "__main__":
    sys.exit(checks.run(CHECKS, sys.argv[1:]))
