"""Standard operators against ONNX Runtime, where the ONNX suite leaves something out: one node a model (standard_cases.py).

    python tests/conformance/standard_test.py [OPERATOR...]
"""

import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
for room in (os.path.join(HERE, ".."), os.path.join(HERE, "..", "cli")):
    sys.path.insert(0, room)

import checks
import microsoft_test
import standard_cases
import workbench


def main():
    cases = [made for family in standard_cases.FAMILIES for made in family()]
    found = [(f"{made.op} {i} {made.attributes}", microsoft_test.on_reference(made))
             for i, made in enumerate(cases) if not sys.argv[1:] or made.op in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as cache:
        return checks.run(found, prepare=lambda folder: workbench.Bench(folder, cache))


if __name__ == "__main__":
    sys.exit(main())
