"""The list of planted faults, mutations.toml."""

import fnmatch
import functools
import os
import re
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
ROOT = os.path.dirname(TESTS)
SOURCES = ("src", "tools", "python", "bench")
KEYS = {"name", "find", "replace", "test", "filter"}
BY_PARAMETER = "conformance_test"  # its tests are the cases of the ONNX suite, which are not in the tree


def load():
    with open(os.path.join(HERE, "mutations.toml"), "rb") as file:
        return tomllib.load(file)["mutation"]


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


@functools.cache
def sources():
    """The text of each source file, by its path from the root."""
    return {os.path.relpath(os.path.join(folder, file), ROOT): read(folder, file) for name in SOURCES
            for folder, _, files in os.walk(os.path.join(ROOT, name)) for file in files if file.endswith((".cc", ".py"))}


def place(mutation):
    """The file that holds the text to replace, and where in it: moved or reformatted code is found too."""
    text = re.compile(r"\s+".join(map(re.escape, mutation["find"].split())))
    found = [(file, match.span()) for file, whole in sources().items() for match in text.finditer(whole)]
    if len(found) != 1:
        raise ValueError(f"'{mutation['name']}': the text to replace occurs {len(found)} times, not once: {[file for file, _ in found]}")
    return found[0]


def file_of(mutation):
    return place(mutation)[0]


def mutated(mutation):
    """The file's text with the fault in it."""
    file, (begin, end) = place(mutation)
    return sources()[file][:begin] + mutation["replace"] + sources()[file][end:]


def is_script(test):
    return test.endswith(".py")


def check_names(script):
    """The checks of a test script, as they stand in it and in the scripts beside it that it takes some from."""
    folder = os.path.dirname(os.path.join(TESTS, script))
    imported = re.findall(r"^import (\w+_checks)$", read(TESTS, script), re.MULTILINE)
    texts = [read(TESTS, script), *(read(folder, f"{name}.py") for name in imported)]
    return {name for text in texts for name in re.findall(r"^def (check\w*)\(", text, re.MULTILINE)}


def test_names(program):
    """The tests of a program as `Suite.Name`, as they stand in the sources."""
    names = set()
    for folder, _, files in os.walk(TESTS):
        if os.path.relpath(folder, TESTS).replace(os.sep, "_") + "_test" != program:
            continue
        for file in files:
            if file.endswith("_test.cc") and not file.startswith("long_"):
                found = re.findall(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", read(folder, file), re.MULTILINE)
                names |= {f"{suite}.{name}" for suite, name in found}
    return names


def patterns_without_a_test(mutation):
    """Those parts of the filter that no test in the sources fits, with or without its parameter, which may be named."""
    if mutation["test"] == BY_PARAMETER:
        return []
    if is_script(mutation["test"]):
        return [name for name in mutation["filter"].split() if name not in check_names(mutation["test"])]
    names = test_names(mutation["test"])
    plain = lambda pattern: pattern.split("/")[1] if "/" in pattern else pattern
    return [pattern for pattern in mutation["filter"].split(":")
            if not any(fnmatch.fnmatchcase(name, plain(pattern)) or fnmatch.fnmatchcase(f"All/{name}/0", pattern) for name in names)]
