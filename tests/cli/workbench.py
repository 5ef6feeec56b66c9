"""Where checks of the command work: a folder each, and one cache of measured costs.

Bench runs the command and asserts its exit status; `report` reads what --json wrote and checks it against
docs/report-schema.json; `save` and `outputs` are the models that go in and the tensors that come out. Beside it, what outputs are
compared with.
"""

import json
import os

import numpy as np
import onnx
import onnxruntime

import command
import schema

with open(os.path.join(command.ROOT, "docs", "report-schema.json")) as file:
    REPORT_SCHEMA = json.load(file)


class Bench:
    """A folder to work in, and a cache that all checks share: what one measured, the others know."""

    def __init__(self, folder, cache):
        self.folder, self.cache = folder, cache

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run(self, *arguments, status=0, warned=False, **environment):
        """What it printed. `warned`: whether it warns; None: it may, for what the machine lacks."""
        result = command.run(arguments, self.folder, cache=self.cache, **environment)
        assert result.returncode == status, f"exit status {result.returncode}: {result.stderr or result.stdout}"
        assert warned is None or (result.stderr == "") == (status == 0 and not warned), result.stderr
        return result.stdout

    def report(self, *arguments, status=0, warned=False, schema_too=True, **environment):
        """The command's report, checked against the schema, and what it printed."""
        printed = self.run(*arguments, "--json", "report.json", status=status, warned=warned, **environment)
        with open(self.path("report.json")) as file:
            report = json.load(file)
        os.remove(self.path("report.json"))
        wrong = schema.problems(report, REPORT_SCHEMA) if schema_too else []
        assert not wrong, "\n".join(wrong[:10])
        return report, printed

    def save(self, name, model):
        onnx.save(model, self.path(name))
        return name

    def outputs(self, folder="outputs"):
        return {name: np.load(self.path(folder, name)) for name in sorted(os.listdir(self.path(folder)))}


def close(actual, expected, budget=1e-4, relative=1e-3):
    assert actual.shape == expected.shape and actual.dtype == expected.dtype, (actual.shape, expected.shape)
    error, allowed = np.abs(np.subtract(actual, expected, dtype=np.float64)), budget * np.abs(expected).max() + relative * np.abs(expected)
    assert (error <= allowed).all(), f"largest error {error.max()}"


def onnxruntime_outputs(path, feed):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feed)
