"""Plants the faults of mutations.toml one at a time; each must make the test fail that it names, which passes without it.

    python tests/mutations/run.py [--only REGEX] [--ninja COMMAND] [--list]

Needs a finished build in build/release, and leaves it and the sources alone: a fault is one more object, made of a changed
copy of its source file (and of the batch that it is compiled in) by that file's own command; it takes the place of the original in a
copy of its library, with which what is tested is linked once more: the test program, or for a script the command or Collage's library.
For a fault in a Python file the script runs in a tree of links to this one, with that file changed. All that is compiled is one run of
ninja in build/mutations, so that a second call builds what changed.

A fault counts as found where an assertion of the test failed. A test that crashes, throws or does not end has noticed something too, but
would not say what. Prints a line a fault; exits with 1 unless every fault was found.
"""

import argparse
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

import mutations

BUILD = os.path.join(mutations.ROOT, "build", "release")
FOLDER = os.path.join(mutations.ROOT, "build", "mutations")
SECONDS = 600  # for a test
LIBRARY = "libcollage.so.0"  # what programs call it


def write(path, text):
    """Leaves a file that holds the text already as old as it is."""
    if os.path.exists(path) and mutations.read(path) == text:
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


@functools.cache
def commands(target):
    """All that makes a target, a line each; the last one links it."""
    return subprocess.run(["ninja", "-C", BUILD, "-t", "commands", target], capture_output=True, text=True,
                          check=True).stdout.splitlines()


@functools.cache
def sources_of(compiled):
    """The source files that one compilation compiles: itself, or those of a batch (CMake's unity builds)."""
    return re.findall(r'^#include "(.+)"$', mutations.read(compiled), re.MULTILINE) if "/Unity/" in compiled else [compiled]


def compile_commands(target, file):
    """How a source file of the target is compiled, each time as words: some are part of two libraries."""
    found, own = [], os.path.join(mutations.ROOT, file)
    for line in commands(target):
        words = shlex.split(line) if " -c " in line else []
        if "-c" in words and own in sources_of(os.path.realpath(os.path.join(BUILD, words[words.index("-c") + 1]))):
            found.append(words)
    if not found:
        raise ValueError(f"{target} is not made of {file}")
    return found


def target_of(mutation):
    """What is linked once more, and as what."""
    if not mutations.is_script(mutation["test"]):
        return mutation["test"], mutation["test"]
    if mutations.file_of(mutation).startswith("tools/"):
        return "collage", "collage"
    return os.path.basename(os.path.realpath(os.path.join(BUILD, LIBRARY))), LIBRARY


def rules(number, mutation):
    """The ninja text that makes what is tested with the fault, and where that will be."""
    folder, file = os.path.join(FOLDER, str(number)), mutations.file_of(mutation)
    os.makedirs(folder, exist_ok=True)
    target, name = target_of(mutation)
    source = os.path.join(folder, os.path.basename(file))
    write(source, mutations.mutated(mutation))
    made_target = os.path.join(folder, name)
    link, text, needed = commands(target)[-1], "", []

    def rule(kind, output, inputs, command, depfile=""):
        nonlocal text
        command = f"cd {BUILD} && {command}".replace("$", "$$")
        text += (f"rule {kind}_{number}\n  command = {command}\n  description = {kind} {mutation['name'].replace('$', '$$')}\n"
                 + (f"  depfile = {depfile}\n  deps = gcc\n" if depfile else "") + f"build {output}: {kind}_{number} {' '.join(inputs)}\n")

    for library in os.listdir(BUILD):  # which the program loads from beside itself
        if library.startswith("libcollage_vendor_") and not os.path.lexists(os.path.join(folder, library)):
            os.symlink(os.path.join(BUILD, library), os.path.join(folder, library))
    for time_compiled, words in enumerate(compile_commands(target, file)):
        original = words[words.index("-o") + 1]
        room = re.match(r"CMakeFiles/(\w+)\.dir/", original).group(1)
        made = os.path.join(folder, f"{room}_{os.path.basename(original)}")
        compiled = os.path.realpath(os.path.join(BUILD, words[words.index("-c") + 1]))
        changed = source
        if sources_of(compiled) != [compiled]:
            changed = os.path.join(folder, f"{room}_{os.path.basename(compiled)}")
            write(changed, mutations.read(compiled).replace(f'"{os.path.join(mutations.ROOT, file)}"', f'"{source}"'))
        for flag, value in (("-o", made), ("-c", changed), ("-MF", made + ".d"), ("-MT", made)):
            words[words.index(flag) + 1] = value
        # What a fault leaves unused is no reason not to build it.
        words[words.index("-c"):words.index("-c")] = ["-Wno-error", "-iquote", os.path.dirname(os.path.join(mutations.ROOT, file))]
        rule(f"compile{time_compiled}", made, sorted({source, changed}), shlex.join(words), made + ".d")
        library = f"lib{room}.a"
        if original in shlex.split(link):  # no library between them
            link = re.sub(rf"(?<![\w/.-]){re.escape(original)}(?![\w.])", made, link)
            needed.append(made)
            continue
        own = os.path.join(folder, library)
        link, times = re.subn(rf"(?<![\w/.-]){re.escape(library)}(?![\w.])", own, link)
        if times == 0:
            raise ValueError(f"{target} is not linked with {library}: {link}")
        member = os.path.basename(original)
        rule(f"replace{time_compiled}", own, [made, os.path.join(BUILD, library)],
             f"cp {library} {own} && test $(ar t {own} | grep -cx {member}) = 1 && cp {made} {folder}/{member} && ar r {own} {folder}/{member}")
        needed.append(own)
    output = re.search(r" -o (\S+)", link).group(1)
    link = link.replace(f" -o {output} ", f" -s -o {made_target} ", 1)
    rule("link", made_target, [*needed, os.path.join(BUILD, output)], link)
    return text, made_target


def tree_with(number, mutation):
    """A folder like this tree, but for one Python file: of links to folders and copies of files, since a script that is a link
    imports what lies beside the file itself."""
    tree = os.path.join(FOLDER, str(number), "tree")
    shutil.rmtree(tree, ignore_errors=True)
    at, real = tree, mutations.ROOT
    os.makedirs(at)
    for part in mutations.file_of(mutation).split("/"):
        for name in os.listdir(real):
            if name != part:
                place = os.symlink if os.path.isdir(os.path.join(real, name)) else shutil.copy
                place(os.path.join(real, name), os.path.join(at, name))
        at, real = os.path.join(at, part), os.path.join(real, part)
        if not os.path.isfile(real):
            os.makedirs(at)
    write(at, mutations.mutated(mutation))
    return tree


def built_with(tree, mutation):
    """A build whose Python package has the tree's file; its command."""
    build = os.path.join(tree, "..", "release")
    shutil.rmtree(build, ignore_errors=True)
    os.makedirs(os.path.join(build, "python"))
    for name in os.listdir(BUILD):
        if name != "python":
            os.symlink(os.path.join(BUILD, name), os.path.join(build, name))
    shutil.copytree(os.path.join(BUILD, "python", "collage"), os.path.join(build, "python", "collage"), symlinks=True)
    to = os.path.join(build, "python", "collage", os.path.basename(mutations.file_of(mutation)))
    os.remove(to)
    shutil.copy(os.path.join(tree, mutations.file_of(mutation)), to)
    return os.path.join(build, "collage")


def told_by_program(result):
    """What a program of GoogleTest says of its tests: whether an assertion failed, and where."""
    failed = re.findall(r"^\[  FAILED  \] ([^\s,]+\.[^\s,]+)", result.stdout, re.MULTILINE)
    if re.search(r"^\S+:\d+: Failure$", result.stdout, re.MULTILINE):
        return True, failed[0] if failed else "an assertion"
    began = re.findall(r"^\[ RUN      \] (\S+)", result.stdout, re.MULTILINE)
    return False, f"status {result.returncode} in {(failed or began or ['no test'])[-1]}"


def told_by_script(result):
    """The same of a script's checks (tests/checks.py): what is no AssertionError has a trace that ends with its name."""
    for check, text in re.findall(r"^FAILED (\S+): (.*?)(?=^FAILED |^\d+ passed, )", result.stdout, re.MULTILINE | re.DOTALL):
        last = text.strip().splitlines()[-1] if text.strip() else ""
        if not text.startswith("Traceback") or last.startswith("AssertionError"):
            return True, check
    return False, f"status {result.returncode}: {result.stdout[-200:]}{result.stderr[-200:]}"


def passes(test, test_filter, program=None, root=mutations.ROOT, command=None, library=None):
    """Whether these tests pass; if not, whether an assertion says so, and which or what else."""
    environment = {**os.environ, "COLLAGE_BIN": command or os.path.join(BUILD, "collage"), "COLLAGE_SOURCE_DIR": root,
                   "XDG_CACHE_HOME": os.path.join(FOLDER, "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    if library:
        environment["LD_LIBRARY_PATH"] = library
    script = mutations.is_script(test)
    words = [sys.executable, os.path.join(root, "tests", test), *test_filter.split()] if script else [program, f"--gtest_filter={test_filter}"]
    try:
        result = subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False, False, "it does not end"
    if result.returncode == 0:
        some = r"^[1-9]\d* passed, 0 failed" if script else r"^\[  PASSED  \] [1-9]"
        skipped = set(re.findall(r"^SKIPPED (\w+)", result.stdout, re.MULTILINE)) & set(test_filter.split())
        return bool(re.search(some, result.stdout, re.MULTILINE)) and not skipped, False, "no test ran"
    return False, *(told_by_script if script else told_by_program)(result)


def passes_with(number, mutation, made):
    """`passes`, with the fault."""
    test, test_filter = mutation["test"], mutation["filter"]
    if mutations.file_of(mutation).endswith(".py"):
        tree = tree_with(number, mutation)
        command = built_with(tree, mutation) if mutations.file_of(mutation).startswith("python/") else None
        return passes(test, test_filter, root=tree, command=command)
    if made.endswith(LIBRARY):
        return passes(test, test_filter, library=os.path.dirname(made))
    return passes(test, test_filter, program=made, command=made if made.endswith("/collage") else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="faults whose name or test program matches this")
    parser.add_argument("--ninja", default="ninja -C", help="what builds, before the folder")
    parser.add_argument("--list", action="store_true", help="print the faults and end")
    options = parser.parse_args()
    chosen = [(number, m) for number, m in enumerate(mutations.load())
              if re.search(options.only, m["name"]) or re.search(options.only, m["test"])]
    if options.list or not chosen:
        print("\n".join(f"{m['test']:24} {m['name']}" for _, m in chosen) or "no fault has such a name")
        return 0 if chosen else 1
    os.makedirs(FOLDER, exist_ok=True)
    made, text = {}, ""
    for number, mutation in chosen:
        if not mutations.file_of(mutation).endswith(".py"):
            added, made[number] = rules(number, mutation)
            text += added
    write(os.path.join(FOLDER, "build.ninja"), text)
    # What does not compile is told below; the rest is built all the same.
    built = subprocess.run([*shlex.split(options.ninja), FOLDER, "-k", "0"], capture_output=True, text=True)
    with open(os.path.join(FOLDER, "build.log"), "w", encoding="utf-8") as log:
        log.write(built.stdout + built.stderr)
    sound, missed = {}, []
    for number, mutation in chosen:
        test = (mutation["test"], mutation["filter"])
        if test not in sound:
            sound[test] = passes(*test, program=os.path.join(BUILD, "tests", mutation["test"]))
        begin = time.monotonic()
        if not sound[test][0]:
            verdict = f"NOT TOLD: without the fault too fails: {sound[test][2]}"
        elif number in made and not os.path.exists(made[number]):
            verdict = f"NOT TOLD: does not build, see {os.path.join(FOLDER, 'build.log')}"
        else:
            passed, asserted, what = passes_with(number, mutation, made.get(number))
            verdict = "MISSED" if passed else f"found by {what}" if asserted else f"NOT ASSERTED: {what}"
        if not verdict.startswith("found"):
            missed.append(mutation["name"])
        print(f"{mutation['name']}\n    {mutation['test']} {mutation['filter']}: {verdict}, {time.monotonic() - begin:.0f} s",
              flush=True)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
