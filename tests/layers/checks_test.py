"""Every check of a test script is run: a function `check_…` is named in its file besides where it is defined, in the list of checks or by
another one.

    python tests/layers/checks_test.py

Prints those that nobody runs; exits with 1 if there are any. The test is first tried on planted text.
"""

import os
import re
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def forgotten(text):
    """The checks that nobody runs."""
    defined = re.findall(r"^def (check_\w+)\(", text, re.MULTILINE)
    return [name for name in defined if len(re.findall(rf"\b{name}\b", text)) == 1]


PLANTED = [("def check_a(folder):\n    pass\ndef check_ab(folder):\n    pass\nCHECKS = (check_ab,)\n", ["check_a"]),
           ("def check_a(folder):\n    check_part(1)\ndef check_part(n):\n    pass\nrun([check_a])\n", [])]


def main():
    problems = [f"planted {text!r}: {forgotten(text)}, not {expected}" for text, expected in PLANTED if forgotten(text) != expected]
    scripts = 0
    for at, _, names in sorted(os.walk(TESTS)):
        for name in sorted(names):
            if not name.endswith(".py"):
                continue
            scripts += 1
            path = os.path.join(at, name)
            with open(path, encoding="utf-8") as file:
                problems += [f"{os.path.relpath(path, TESTS)}: nothing runs {check}" for check in forgotten(file.read())]
    print("\n".join([*problems, f"{scripts} scripts, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
