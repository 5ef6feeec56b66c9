"""The list of planted faults, mutations.toml."""

import fnmatch
import os
import re
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
ROOT = os.path.dirname(TESTS)
KEYS = {"name", "file", "find", "replace", "test", "filter"}
BY_PARAMETER = "conformance_test"  # its tests are the cases of the ONNX suite, which are not in the tree


def load():
    with open(os.path.join(HERE, "mutations.toml"), "rb") as file:
        return tomllib.load(file)["mutation"]


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def mutated(mutation):
    """The file's text with the fault in it."""
    text = read(ROOT, mutation["file"])
    count = text.count(mutation["find"])
    if count != 1:
        raise ValueError(f"'{mutation['name']}': {mutation['file']} holds the text to replace {count} times, not once")
    return text.replace(mutation["find"], mutation["replace"])


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
