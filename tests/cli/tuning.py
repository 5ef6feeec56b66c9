"""Starting, watching, and ending `collage tune` while it measures."""

import os
import signal
import sqlite3
import subprocess
import time

import onnx
from onnx import helper

import command
import tiny_models

OPS = ("Relu", "Tanh", "Sigmoid", "Exp", "Abs", "Neg", "Sqrt", "Elu", "Softplus", "Ceil")


def many_functions(count):
    """A model of that many unconnected operators, each of another operator or shape: as many measurements, all short."""
    nodes, inputs, outputs = [], {}, {}
    for i in range(count):
        nodes.append(helper.make_node(OPS[i % len(OPS)], [f"x{i}"], [f"y{i}"], f"node{i}"))
        inputs[f"x{i}"] = outputs[f"y{i}"] = [2, 3 + i // len(OPS)]
    return tiny_models.model(nodes, inputs, outputs)


# A second toolchain that takes none of these: with one alone `run` would not measure.
TWO_TOOLCHAINS = ["--targets", "onednn,native,reference", "--exclude", ",".join(
    f"native:{op}" for op in ("nn.relu", "tanh", "sigmoid", "exp", "abs", "negative", "sqrt", "nn.elu", "nn.softplus", "ceil"))]


def measurements(rows):
    """How many of them `tune` counts: timings of whole covers are no measurements."""
    return sum(kind in ("function", "conversion") for kind, _ in rows)


class Tuning:
    """A folder with many.onnx, and `collage tune` on it with costs.db."""

    def __init__(self, folder, functions):
        self.folder, self.functions = folder, functions
        onnx.save(many_functions(functions), os.path.join(folder, "many.onnx"))
        self.flags = ["many.onnx", *TWO_TOOLCHAINS, "--effort", "fast", "--db", "costs.db"]

    def start(self, verb="tune"):
        environment = {k: v for k, v in os.environ.items() if k not in command.CACHE_VARIABLES}
        environment["COLLAGE_CACHE"] = os.path.join(self.folder, "cache")
        return subprocess.Popen([command.COLLAGE, verb, *self.flags], cwd=self.folder, env=environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self, verb="tune", status=0):
        process = self.start(verb)
        out, err = process.communicate(timeout=600)
        assert process.returncode == status, f"exit status {process.returncode}: {err or out}"
        return out

    def rows(self):
        """{(kind, key): (value, date)}, or {} where there is no table yet. What is known of the machine is left out: it
        changes when a process sees the cores in a better moment."""
        path = os.path.join(self.folder, "costs.db")
        if not os.path.exists(path):
            return {}
        database = sqlite3.connect(path, timeout=60)
        try:
            found = database.execute("SELECT kind, key, value, written FROM costs WHERE kind != 'machine'")
            return {row[:2]: row[2:] for row in found}
        except sqlite3.OperationalError as error:
            assert "no such table" in str(error), error
            return {}
        finally:
            database.close()

    def check_integrity(self):
        database = sqlite3.connect(os.path.join(self.folder, "costs.db"), timeout=60)
        (verdict,), = database.execute("PRAGMA integrity_check")
        database.close()
        assert verdict == "ok", verdict

    def signal_after(self, process, rows, number):
        """Sends the signal once that many rows are there; whether the process was still measuring."""
        deadline = time.monotonic() + 300
        while process.poll() is None and len(self.rows()) < rows:
            assert time.monotonic() < deadline, "it measures nothing"
            time.sleep(0.005)
        running = process.poll() is None
        if running:
            process.send_signal(number)
        return running


def kill_many_times(folder, kills, functions, pause):
    """kill -9 spread over a tuning run, a row or more apart: nothing acknowledged is lost or measured again."""
    tuning = Tuning(folder, functions)
    known = {}
    for number in range(kills):
        process = tuning.start()
        assert tuning.signal_after(process, len(known) + 1, 0), f"tuning ended before kill {number}"
        time.sleep(pause(number))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL, f"tuning ended before kill {number}"
        tuning.check_integrity()
        rows = tuning.rows()
        assert len(rows) > len(known) and known.items() <= rows.items(), f"rows were lost or rewritten by kill {number}"
        known = rows
    printed = tuning.finish()
    rows = tuning.rows()
    assert known.items() <= rows.items(), "what was finished was measured again"
    assert f" {measurements(rows) - measurements(known)} measured" in printed, (printed, len(known), len(rows))
    return len(rows)
