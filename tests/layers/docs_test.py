"""README and docs as a reader follows them: links lead somewhere, README leads to every page, and what it tells to type exists.

    python tests/layers/docs_test.py

Prints what is wrong; exits with 1 if anything is. Each check is first tried on planted text.
"""

import os
import re
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def pages():
    return ["README.md", "python/README.md", *sorted(os.path.relpath(os.path.join(folder, name), ROOT)
            for folder, _, names in os.walk(os.path.join(ROOT, "docs")) for name in names if name.endswith(".md"))]


def links(text):
    """(target, anchor) of each link that is no address of the web; examples of code hold none."""
    text = re.sub(r"^```.*?^```|^ {4}.*?$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    return [(target, anchor) for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text) if not re.match(r"\w+:", target)]


def anchors(text):
    """What headings are linked by."""
    found = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", one).lower()).replace(" ", "-") for one in found}


def broken_links(path, text):
    found = []
    for target, anchor in links(text):
        to = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if not os.path.exists(os.path.join(ROOT, to)):
            found.append(f"{path}: {target} does not exist")
        elif anchor and to.endswith(".md") and anchor not in anchors(text if to == path else read(to)):
            found.append(f"{path}: {target} has no heading #{anchor}")
    return found


def unlisted(readme, every):
    """Pages that README does not lead to."""
    led = {os.path.normpath(target) for target, _ in links(readme)}
    return [f"README.md leads nowhere to {path}" for path in every if path.startswith("docs") and path not in led]


def unknown_targets(readme, makefile):
    """`make X` that the Makefile does not know."""
    known = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    return [f"README.md: make {name} is no target" for name in re.findall(r"\bmake ([a-z][\w-]*)", readme) if name not in known]


def stale_latencies(readme, results):
    """Rows of README's table of latencies that no table of docs/results.md has."""
    rows = [re.split(r" *\| *", line)[1:-1] for line in results.splitlines() if line.startswith("| ")]
    # Model, Collage's, the faster of the other two.
    measured = {(row[0], row[1], min(row[3:5], key=float)) for row in rows if len(row) == 9 and re.fullmatch(r"[\d.]+", row[1])}
    found = []
    for line in readme.splitlines():
        cells = re.split(r" *\| *", line)[1:-1]
        if len(cells) == 6 and re.fullmatch(r"[\d.]+", cells[2]):
            found += [f"README.md: {cells[0]} {pair} is not of docs/results.md" for pair in (cells[2:4], cells[4:6])
                      if pair != ["", ""] and (cells[0], *pair) not in measured]
    return found


PLANTED = [
    (broken_links("docs/x.md", "[a](nowhere.md) [b](command.md#flags) [c](command.md#none) [d](https://e.f/g) `[h](i)`\n    [j](k)\n"),
     ["docs/x.md: nowhere.md does not exist", "docs/x.md: command.md has no heading #none"]),
    (unlisted("[a](docs/a.md#b)", ["README.md", "docs/a.md", "docs/c.md"]), ["README.md leads nowhere to docs/c.md"]),
    (unknown_targets("`make demo`, make nothing", "demo: build\n"), ["README.md: make nothing is no target"]),
    (stale_latencies("| bert | a | 1.5 | 2.0 | 1.5 | 3.0 |", "| bert | 1.5 | | 3.0 | 2.0 | 1x | | | |"),
     ["README.md: bert ['1.5', '3.0'] is not of docs/results.md"]),
]


def main():
    problems = [f"planted text gives {found}, not {expected}" for found, expected in PLANTED if found != expected]
    readme, every = read("README.md"), pages()
    problems += [one for path in every for one in broken_links(path, read(path))]
    problems += unlisted(readme, every) + unknown_targets(readme, read("Makefile")) + stale_latencies(readme, read("docs/results.md"))
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
