"""The `collage` command: python -m collage run model.onnx; and `python -m collage demo`."""

import os
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COMMAND = os.path.join(HERE, "bin", "collage")


def demo(flags: list[str]) -> int:
    """Compares the small model that the package holds with the reference, and runs it."""
    for verb in ("verify", "run"):
        words = [verb, os.path.join(HERE, "mnist.onnx"), *flags]
        print("$ collage", shlex.join(words), flush=True)
        if status := subprocess.run([COMMAND, *words], check=False).returncode:
            return status
    print(f"$ collage explain {shlex.quote(words[1])}    # says why; `collage help` lists the rest")
    return 0


def main() -> None:
    sys.stdout.flush()
    os.environ.setdefault("COLLAGE_PYTHON", sys.executable)  # runs the other runtimes of `bench --compare`
    if sys.argv[1:2] == ["demo"]:
        sys.exit(demo(sys.argv[2:]))
    os.execv(COMMAND, ["collage", *sys.argv[1:]])


if __name__ == "__main__":
    main()
