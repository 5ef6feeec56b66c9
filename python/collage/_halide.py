"""libHalide of the package halide, which lies beside this one, where the loader finds it; or elsewhere on Python's path."""

import ctypes
import importlib.util
import os

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = os.path.join("lib64", "libHalide.so")


def load() -> None:
    """Loads it from wherever it is, and tells the processes that this one will start. In a build's package it is found without."""
    if not os.path.isdir(os.path.join(HERE, "lib")) or os.path.exists(os.path.join(HERE, "..", "halide", LIBRARY)):
        return
    halide = importlib.util.find_spec("halide")
    for folder in halide.submodule_search_locations or [] if halide else []:
        library = os.path.join(folder, LIBRARY)
        if os.path.exists(library):
            others = os.environ.get("LD_LIBRARY_PATH")
            os.environ["LD_LIBRARY_PATH"] = os.path.dirname(library) + (f":{others}" if others else "")
            ctypes.CDLL(library)
            return
