"""Counts what a user of the command has to learn, by the sources: distinct long flags over all sub-commands, one name a flag, and
environment variables.

    python tests/layers/interface_test.py [--list]

The test first plants violations and fails if the counts do not see them.
"""

import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MOST_LONG_FLAGS = 34
VARIABLES = {"COLLAGE_CACHE", "COLLAGE_DUMP", "COLLAGE_DISABLE_PASS", "COLLAGE_PYTHON"}
# What the tests alone set: another worker, what a worker may take, the inputs that kernels are checked on, and other shipped costs.
OF_TESTS = {"COLLAGE_WORKER", "COLLAGE_MEASURE_TIMEOUT", "COLLAGE_MEASURE_MEMORY", "COLLAGE_CHECK_SEED", "COLLAGE_COSTS"}
DECLARED = re.compile(r'(?:add_option|add_flag|set_version_flag)\(\s*"(-[^"]*)"')
READ = re.compile(r'"(COLLAGE_[A-Z_]+)"')


def declared_flags(text):
    """Of each flag its names."""
    return [names.split(",") for names in DECLARED.findall(text)]


def problems(tools, sources):
    """One line for each rule that is broken; `tools` and `sources` are texts."""
    flags = [names for text in tools for names in declared_flags(text)]
    long_flags = {name for names in flags for name in names if name.startswith("--")}
    found = [f"{' and '.join(names)} are two names of one flag" for names in flags if len(names) > 1]
    if len(long_flags) > MOST_LONG_FLAGS:
        found.append(f"{len(long_flags)} long flags, {MOST_LONG_FLAGS} at most: {' '.join(sorted(long_flags))}")
    read = {name for text in sources for name in READ.findall(text)}
    return found + [f"{name}: a variable beside {' '.join(sorted(VARIABLES))}" for name in sorted(read - VARIABLES - OF_TESTS)]


def texts_below(*folders):
    for folder in folders:
        for base, _, files in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(files):
                if name.endswith((".cc", ".h")):
                    with open(os.path.join(base, name), encoding="utf-8") as file:
                        yield file.read()


def main(arguments):
    tools, sources = list(texts_below("tools/collage")), list(texts_below("tools", "src", "include", "python/bindings"))
    flags = {name for text in tools for names in declared_flags(text) for name in names if name.startswith("--")}
    assert len(flags) > 20 and VARIABLES <= {name for text in sources for name in READ.findall(text)}, "nothing is read"
    many = "".join(f'add_flag("--flag-{i}", x)' for i in range(MOST_LONG_FLAGS + 1))
    for planted in (problems([many], []), problems(['add_option(\n  "-o,--output", x)'], []), problems([], ['std::getenv("COLLAGE_CAKE")'])):
        assert len(planted) == 1, planted
    if "--list" in arguments:
        print(f"{len(flags)} long flags: {' '.join(sorted(flags))}")
    found = problems(tools, sources)
    print("\n".join(found) or f"{len(flags)} long flags, {len(VARIABLES)} variables")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
