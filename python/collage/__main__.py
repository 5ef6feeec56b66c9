"""The `collage` command: python -m collage run model.onnx"""

import os
import sys

COMMAND = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "collage")


def main() -> None:
    sys.stdout.flush()
    os.environ.setdefault("COLLAGE_PYTHON", sys.executable)  # runs the other runtimes of `bench --compare`
    os.execv(COMMAND, ["collage", *sys.argv[1:]])


if __name__ == "__main__":
    main()
