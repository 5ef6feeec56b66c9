"""collage compile --for: a program for a machine that is not here, by what it measured.

    python tests/cli/cli_other_machine_test.py [CHECK...]

One thread is another machine than two: it has a fingerprint and costs of its own. Others are made by changing what the database says of it.
Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import json
import os
import sqlite3
import subprocess
import sys
import zipfile

import onnx
from onnx import helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import command
import tiny_models

TOOLCHAINS = ["--targets", "onednn,native,reference"]


class Bench:
    """A folder with net.onnx, which a machine of one thread has tuned."""

    def __init__(self, folder, flags=TOOLCHAINS, model=None):
        self.folder, self.flags = folder, list(flags)
        onnx.save(model or tiny_models.small_net(), os.path.join(folder, "net.onnx"))
        self.run("tune", "net.onnx", *self.flags, "--effort", "fast", "--threads", "1")
        (machine,) = self.machines()
        self.fingerprint = machine["fingerprint"]

    def run(self, *arguments, status=0):
        database = [] if arguments[1].endswith(".collage") else ["--db", "costs.db"]
        result = command.run([*arguments, *database], self.folder, cache=os.path.join(self.folder, "cache"))
        assert result.returncode == status, f"exit status {result.returncode}: {result.stderr or result.stdout}"
        return result.stdout + result.stderr

    def compile(self, *flags, status=0):
        return self.run("compile", "net.onnx", "--for", self.fingerprint, "-o", "there.collage", "--json", "report.json", *flags, status=status)

    def machines(self):
        self.run("db", "info", "--json", "info.json")
        with open(os.path.join(self.folder, "info.json"), encoding="utf-8") as file:
            return json.load(file)["fingerprints"]

    def plan(self):
        with open(os.path.join(self.folder, "report.json"), encoding="utf-8") as file:
            report = json.load(file)
        return report, [(kernel["name"], kernel["target"], kernel.get("variant")) for kernel in report["kernels"]]

    def rows(self):
        return self.run("db", "export", "-").count("\n")

    def change(self, **fields):
        """What the database says of the machine."""
        with sqlite3.connect(os.path.join(self.folder, "costs.db")) as database:
            ((value,),) = database.execute("SELECT value FROM costs WHERE kind = 'machine' AND text = ?", (self.fingerprint,))
            database.execute("UPDATE costs SET value = ? WHERE kind = 'machine' AND text = ?",
                             (json.dumps(json.loads(value) | fields), self.fingerprint))

    def code(self):
        """Instructions of the compiled kernels in the artifact, which lie in it as they are."""
        with zipfile.ZipFile(os.path.join(self.folder, "there.collage")) as file:
            objects = [file.read(name) for name in file.namelist() if name.startswith("objects/")]
        text = ""
        for code in objects:
            if not code.startswith(b"\x7fELF"):
                continue
            with open(os.path.join(self.folder, "kernel.so"), "wb") as file:
                file.write(code)
            text += subprocess.run(["objdump", "-d", "kernel.so"], cwd=self.folder, check=True, text=True, stdout=subprocess.PIPE).stdout
        return text

    def manifest(self):
        with zipfile.ZipFile(os.path.join(self.folder, "there.collage")) as file:
            return json.loads(file.read("manifest.json"))


def check_its_own_plan(folder):
    """It is the plan that the machine itself would choose, and nothing is measured or kept here."""
    bench = Bench(folder)
    bench.run("run", "net.onnx", *bench.flags, "--threads", "1", "--frozen-costs", "--json", "report.json")
    _, expected = bench.plan()
    rows = bench.rows()
    bench.compile(*bench.flags)
    report, kernels = bench.plan()
    assert kernels == expected, (kernels, expected)
    assert report["env"]["threads"] == 1 and report["estimates"]["measured"] == report["estimates"]["tried"] == 0, report["estimates"]
    assert bench.rows() == rows
    assert bench.manifest()["threads"] == 1
    bench.run("verify", "there.collage")
    bench.compile("--threads", "1", *bench.flags)
    bench.compile("--threads", "2", *bench.flags, status=2)
    # By default with the targets of that machine, some of which it did not measure.
    printed = bench.compile(status=8)
    assert "no measurement of" in printed, printed
    assert bench.rows() == rows


def check_another_instruction_set(folder):
    """Code is of the instruction set that the machine has, is not run here where it cannot, and says so."""
    model = tiny_models.model([helper.make_node("Tanh", ["x"], ["y"], "tanh")], {"x": [64, 256]}, {"y": [64, 256]})
    bench = Bench(folder, ["--targets", "native,reference"], model)
    (machine,) = bench.machines()
    narrow = [feature for feature in machine["features"] if not feature.startswith(("avx512", "amx"))]
    bench.compile(*bench.flags)
    if "avx512f" in machine["features"]:
        assert "%zmm" in bench.code() and "avx512f" in bench.manifest()["features"]
    bench.change(features=narrow)
    bench.compile(*bench.flags)
    assert "%ymm" in bench.code() and "%zmm" not in bench.code(), "it is of narrow vectors"
    assert bench.manifest()["features"] == narrow
    bench.run("verify", "there.collage")
    bench.change(features=[*narrow, "avx1024"])
    bench.run("db", "prune", "check")
    printed = bench.compile(*bench.flags)
    assert "the program is not checked: this processor lacks avx1024" in printed, printed
    printed = bench.run("run", "there.collage", status=5)
    assert "made for a processor with avx1024, which this one lacks" in printed, printed


def check_refusals(folder):
    """A line each."""
    bench = Bench(folder)
    for words, status, told in (
            (["--emit", "library", "-o", "x.a"], 2, "--for: a library is made on the machine that it is for"),
            (["--max-error", "0.01"], 2, "no --max-error"),
            (["--save-outputs", "out"], 2, "does not run here")):
        result = command.run(["compile", "net.onnx", "--for", bench.fingerprint, "--db", "costs.db", *bench.flags,
                              *([] if "-o" in words else ["-o", "x.collage"]), *words], bench.folder, cache=os.path.join(folder, "cache"))
        assert result.returncode == status, result
        assert told in result.stderr and result.stderr.count("\n") == 1, result.stderr
    fingerprint, bench.fingerprint = bench.fingerprint, "0123456789abcdef"
    printed = bench.compile(*bench.flags, status=2)
    assert f"there is {fingerprint} (" in printed and printed.count("\n") == 1, printed
    bench.fingerprint = fingerprint
    for fields, told in (({"processor": "of another build"}, "another build of Collage"), ({"architecture": "aarch64"}, "of the architecture aarch64")):
        bench.change(**fields)
        printed = bench.compile(*bench.flags, status=5)
        assert told in printed and printed.count("\n") == 1, printed


CHECKS = (check_its_own_plan, check_another_instruction_set, check_refusals)

if __name__ == "__main__":
    sys.exit(checks.run(CHECKS, sys.argv[1:]))
