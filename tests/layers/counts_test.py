"""Counts what a newcomer has to learn, and fails where a count grows: lines, rooms, types that describe a cover, functions of many
parameters. Flags and variables are counted by interface_test.py, what a backend states by backend_interface_test.py.

    python tests/layers/counts_test.py [--list COUNT]

A limit that is too high is an error too: who makes the tree simpler lowers it here. Each count is first tried on planted text.
"""

import argparse
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
PRODUCT = ("src", "tools", "python", "include")


def files(*folders, endings=(".h", ".cc")):
    """(path, text) of each source below the folders."""
    for folder in folders:
        for at, _, names in sorted(os.walk(os.path.join(ROOT, folder))):
            for name in sorted(names):
                if name.endswith(endings):
                    path = os.path.join(at, name)
                    with open(path, encoding="utf-8") as file:
                        yield os.path.relpath(path, ROOT), file.read()


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


COVER = r"\w*Cover|KernelChoice|ChosenKernel|CoverKernel|ListedKernel|ReportedKernel|ReportedPlan|CoverParts|CoverRow|KernelStatement|PlanCandidate"


def cover_types(text):
    """Types that say which kernels a plan is made of."""
    return re.findall(rf"^(?:struct|class) ({COVER})\b(?! *;)", without_comments(text), re.MULTILINE)


def split_parameters(text):
    """Parameters between the parentheses that `text` starts within; None where these are no declaration's."""
    depth, parts, part = 1, [], ""
    for at, letter in enumerate(text):
        depth += letter in "([{<"
        depth -= letter in ")]}" or (letter == ">" and text[at - 1] != "-")
        if depth == 0:
            parts.append(part)
            return [one.strip() for one in parts if one.strip()]
        if letter == "," and depth == 1:
            parts.append(part)
            part = ""
        else:
            part += letter
    return None


def wide_functions(text, most=6):
    """Functions declared with more than `most` parameters."""
    text = without_comments(text)
    found = []
    for match in re.finditer(r"^ {0,4}[A-Za-z_][\w:<>,&*\s]*?[\s&*](?:\w+::)*(\w+)\(", text, re.MULTILINE):
        parameters = split_parameters(text[match.end():match.end() + 2000])
        if parameters and len(parameters) > most and all(re.search(r"[\w>&*]\s+[&*]*\w+(\s*=.*)?$", one, re.DOTALL) for one in parameters):
            found.append(match[1])
    return found


def largest_room():
    """The lines of the largest room; each backend's and each frontend's folder is counted alone."""
    rooms = {}
    for path, text in files("src"):
        parts = path.split(os.sep)
        room = os.sep.join(parts[:3 if parts[1] in ("backend", "frontend") and len(parts) > 3 else 2])
        rooms.setdefault(room, []).extend([room] * text.count("\n"))
    return max(rooms.values(), key=len)


def fullest_folder():
    """The files of the folder that holds most, folders in it not counted."""
    folders = {}
    for path, _ in files("src", endings=("",)):
        folders.setdefault(os.path.dirname(path), []).append(path)
    return max(folders.values(), key=len)


def found(function, paths):
    return [f"{path}: {one}" for path, text in paths for one in function(text)]


COUNTS = {
    "lines": lambda: [path for path, text in files(*PRODUCT, endings=("",)) if "__pycache__" not in path for _ in range(text.count("\n"))],
    "rooms": lambda: [name for name in os.listdir(os.path.join(ROOT, "src"))],
    "lines of the largest room": largest_room,
    "files of the fullest folder": fullest_folder,
    "types that describe a cover": lambda: sorted(set(found(cover_types, files("src")))),
    "functions of more than six parameters": lambda: sorted({name for _, text in files("src", "tools", "python") for name in wide_functions(text)}),
}

# What each count may be.
LIMITS = {"lines": 138_250, "rooms": 19, "lines of the largest room": 12_000, "files of the fullest folder": 60, "types that describe a cover": 3, "functions of more than six parameters": 5}

PLANTED = [
    (cover_types, "struct NamedCover {\nclass Other {\nstruct KernelChoice;\nstruct ListedKernel : Base {\n", ["NamedCover", "ListedKernel"]),
    (wide_functions, "void f(int a, int b, int c, int d, int e, int f, std::map<int, int> g);\nint h(int a, int b);\n  x = call(a, b, c, d, e, f, g);\n",
     ["f"]),
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", help="print what is counted under that name")
    options = parser.parse_args()
    problems = [f"{count.__name__}: {count(text)} of planted {text!r}, not {expected}" for count, text, expected in PLANTED if count(text) != expected]
    for name, count in COUNTS.items():
        items = count()
        if name == options.list:
            print("\n".join(items))
        limit = LIMITS.get(name, 0)
        print(f"{name}: {len(items)} of {limit}")
        if len(items) > limit:
            problems.append(f"{name}: {len(items)}, {limit} at most")
        # Lines and files come and go; other counts change by intent.
        elif len(items) < limit - (1000 if name == "lines" else 0) and name not in ("lines of the largest room", "files of the fullest folder"):
            problems.append(f"{name}: {len(items)}; lower the limit of {limit}")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
