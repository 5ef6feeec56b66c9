"""Checks that no source file has grown beyond LIMIT lines: a file holds one concept, and a longer one holds several.

EXCEPTIONS names files that may, each with the reason; one that is not needed any more is an error too. The test first plants
files in a scratch tree and fails if the check judges them wrongly.
"""

import os
import sys
import tempfile

LIMIT = 450
FOLDERS = ("bench", "include", "models", "src", "tests", "tools")
ENDINGS = (".h", ".cc", ".py")
EXCEPTIONS = {}  # file: why


def check(root, exceptions):
    """What is wrong under root, as 'file: why', and the number of files looked at."""
    problems, seen, long = [], 0, set()
    for folder in FOLDERS:
        for at, _, names in sorted(os.walk(os.path.join(root, folder))):
            for name in sorted(names):
                if not name.endswith(ENDINGS):
                    continue
                path = os.path.join(at, name)
                with open(path, "rb") as file:
                    lines = sum(1 for _ in file)
                seen += 1
                path = os.path.relpath(path, root)
                if lines <= LIMIT:
                    continue
                long.add(path)
                if path not in exceptions:
                    problems.append(f"{path}: {lines} lines, {LIMIT} at most: split it by concept")
    problems += [f"{path}: is no exception any more: not there, or short enough" for path in sorted(exceptions.keys() - long)]
    return problems, seen


# (file, lines, is that a problem). The exceptions of the scratch tree are those called excepted_….
PLANTED = [
    ("src/room/short.cc", LIMIT, False),
    ("src/room/long.cc", LIMIT + 1, True),
    ("include/collage/long.h", LIMIT + 1, True),
    ("tests/deep/er/long_test.py", 2 * LIMIT, True),
    ("tests/deep/er/expected.txt", 2 * LIMIT, False),
    ("docs/long.py", 2 * LIMIT, False),
    ("tools/excepted_long.cc", LIMIT + 1, False),
    ("tools/excepted_short.cc", LIMIT, True),
]


def self_test():
    """Plants files and returns those that check() judges wrongly."""
    with tempfile.TemporaryDirectory() as root:
        for path, lines, _ in PLANTED:
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write("// planted\n" * lines)
        excepted = {path: "planted" for path, _, _ in PLANTED if "excepted_" in path} | {"src/missing.cc": "planted"}
        found = {problem.split(":")[0] for problem in check(root, excepted)[0]}
    expected = {path for path, _, bad in PLANTED if bad} | {"src/missing.cc"}
    return [f"self-test: {path}: {'wrongly refused' if path in found else 'not seen'}" for path in sorted(found ^ expected)]


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    wrong = self_test()
    problems, seen = check(root, EXCEPTIONS)
    for line in wrong + problems:
        print(line)
    print(f"file sizes: {seen} files, {len(problems)} problems; {len(PLANTED) + 1} planted, {len(wrong)} misjudged")
    return 1 if wrong or problems else 0


if __name__ == "__main__":
    sys.exit(main())
