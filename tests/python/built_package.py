"""The package as the build leaves it, for the scripts of this folder: importing this puts it on the path, and what tests share.

Takes the build that COLLAGE_BIN lies in (default build/release).
"""

import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
BUILD = os.path.dirname(os.environ.get("COLLAGE_BIN") or os.path.join(ROOT, "build", "release", "collage"))
PACKAGE = os.path.join(BUILD, "python", "collage")
BUILT = os.path.exists(os.path.join(PACKAGE, "_core.pyi"))
sys.path[:0] = [os.path.join(BUILD, "python"), *(os.path.join(ROOT, *shared) for shared in (["tests"], ["tests", "cli"], ["models"]))]

import onnx

import checks

if BUILT:
    import collage


def saved(folder, model, name="net.onnx"):
    path = os.path.join(folder, name)
    onnx.save(model, path)
    return path


def program(folder, model, **options):
    """On the reference alone, which nothing has to be measured for."""
    return collage.load(saved(folder, model)).compile(**({"targets": "reference", "database": os.path.join(folder, "costs.db")} | options))


def run(chosen, arguments, with_torch=()):
    """`checks.run`, of nothing where there is no package; of those `with_torch`, too, where this environment has it."""
    if not BUILT:
        print("SKIPPED: this build has no Python package (nanobind, python3-dev)\n1 passed, 0 failed")
        return 0
    if importlib.util.find_spec("torch"):
        chosen = [*chosen, *with_torch]
    else:
        for check in with_torch:
            print(f"SKIPPED {check.__name__}: no torch in this environment")
    return checks.run(chosen, arguments)
