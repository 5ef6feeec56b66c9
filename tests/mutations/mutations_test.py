"""The list of planted faults (mutations.toml) fits the tree: each text to replace stands in the sources once, each filter names tests.

    python tests/mutations/mutations_test.py

That the tests notice the faults takes too long for every run: `make mutations` (run.py) tells.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]

import checks
import mutations

# Where a fault once went unnoticed by this list.
ROOMS = (*(f"src/backend/{name}/kernels/" for name in ("amx", "blas", "contraction", "gemm", "memory", "native", "onednn", "opencl", "openvino", "recurrent")),
         *(f"src/backend/{name}/" for name in ("amx", "blas", "opencl", "openvino")), "src/backend/native/codegen/halide_math.cc",
         "src/measure/worker", "src/artifact/zip.cc", "src/dynamic/", "src/artifact/bucketing/", "src/artifact/library/", "src/passes/devices/", "tools/collage/",
         "python/collage/")

def check_texts(folder):
    """Every text to replace occurs exactly once in all sources, and its replacement is another text; every room has some."""
    known = mutations.load()
    assert len(known) >= 150, f"{len(known)} mutations"
    names = [mutation["name"] for mutation in known]
    assert len(set(names)) == len(names), "a name occurs twice"
    wrong, files = [], set()
    for mutation in known:
        assert set(mutation) == mutations.KEYS, f"'{mutation['name']}' has the keys {sorted(mutation)}"
        try:
            file = mutations.file_of(mutation)
            files.add(file)
            if mutations.mutated(mutation) == mutations.sources()[file]:
                wrong.append(f"'{mutation['name']}' changes nothing")
        except ValueError as error:
            wrong.append(str(error))
    wrong += [f"{room} has no mutation" for room in ROOMS if not any(file.startswith(room) for file in files)]
    assert not wrong, "\n".join(wrong)


def check_filters(folder):
    """Every part of every filter names a test that is there."""
    wrong = [f"'{mutation['name']}': {mutation['test']} has no test {pattern}"
             for mutation in mutations.load() for pattern in mutations.patterns_without_a_test(mutation)]
    assert not wrong, "\n".join(wrong)


if __name__ == "__main__":
    sys.exit(checks.run((check_texts, check_filters), sys.argv[1:]))
