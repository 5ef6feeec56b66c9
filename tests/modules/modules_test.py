"""Modules in which operators and tensor programs of users stand side by side, compiled whole: every output against the reference's.

    python tests/modules/modules_test.py [CHECK...]

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "cli")]

import checks
import command
import modules


def verify(folder, text, *flags):
    """The report of a module that the command says is right."""
    path, report = os.path.join(folder, "module.relay"), os.path.join(folder, "report.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = command.run(["verify", path, "--threads", "2", "--json", report, *flags], folder, cache=os.path.join(folder, "cache"))
    assert done.returncode == 0, f"{flags} gave {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    with open(report, encoding="utf-8") as file:
        return json.load(file)


def kernels_of(report):
    """The operators of each kernel of native."""
    return [sorted(op["op"] for op in kernel["ops"]) for kernel in report["kernels"] if kernel["target"].startswith("native")]


def check_of(name, sizes):
    def check(folder):
        text = modules.text(name, sizes)
        fused = verify(folder, text, "--targets", "native")
        parts = verify(folder, text, "--config", modules.parts_config(folder))
        assert len(kernels_of(fused)) < len(kernels_of(parts)), f"{kernels_of(fused)} and {kernels_of(parts)}"
        for program in re.findall(r"^program @(\w+)", text, re.MULTILINE):
            assert [program] in kernels_of(parts) and [program] not in kernels_of(fused), (program, kernels_of(fused))
        verify(folder, modules.text(name, sizes, operators=True), "--targets", "native")

    return f"{name}_{'x'.join(map(str, sizes.values()))}", check


if __name__ == "__main__":
    sys.exit(checks.run([check_of(name, sizes) for name, several in modules.SMALL.items() for sizes in several], sys.argv[1:]))
