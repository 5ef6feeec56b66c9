"""Plants the faults of mutations.toml one at a time; each must make the test fail that it names, which passes without it.

    python tests/mutations/run.py [--only REGEX] [--ninja COMMAND] [--list]

Needs a finished build in build/release, and leaves it and the sources alone: a fault is one more object, made of a changed
copy of its source file by that file's own command; it takes the place of the original in a copy of the room's library, with
which the test program is linked once more. All of that is one run of ninja in build/mutations, so that a second call builds
what changed. Prints a line a fault; exits with 1 unless every fault was found.
"""

import argparse
import functools
import os
import re
import shlex
import subprocess
import sys
import time

import mutations

BUILD = os.path.join(mutations.ROOT, "build", "release")
FOLDER = os.path.join(mutations.ROOT, "build", "mutations")
SECONDS = 600  # for a test; one that hangs has noticed too


def write(path, text):
    """Leaves a file that holds the text already as old as it is."""
    if os.path.exists(path) and mutations.read(path) == text:
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


@functools.cache
def commands(program):
    """All that makes a program, a line each; the last one links it."""
    return subprocess.run(["ninja", "-C", BUILD, "-t", "commands", program], capture_output=True, text=True,
                          check=True).stdout.splitlines()


def compile_command(program, file):
    """How a source file of the program is compiled, as words."""
    for line in commands(program):
        words = shlex.split(line) if f"{file} " in f"{line} " and " -c " in line else []
        if "-c" in words and os.path.realpath(os.path.join(BUILD, words[words.index("-c") + 1])) == os.path.join(mutations.ROOT, file):
            return words
    raise ValueError(f"{program} is not made of {file}")


def rules(number, mutation):
    """The ninja text that makes the test program with the fault, and where that program will be."""
    folder = os.path.join(FOLDER, str(number))
    os.makedirs(folder, exist_ok=True)
    source = os.path.join(folder, os.path.basename(mutation["file"]))
    write(source, mutations.mutated(mutation))
    words = compile_command(mutation["test"], mutation["file"])
    original = words[words.index("-o") + 1]
    library = re.match(r"CMakeFiles/(\w+)\.dir/", original).group(1)
    library = f"lib{library}.a"
    made = os.path.join(folder, os.path.basename(original))
    for flag, value in (("-o", made), ("-c", source), ("-MF", made + ".d"), ("-MT", made)):
        words[words.index(flag) + 1] = value
    words[words.index("-c"):words.index("-c")] = ["-iquote", os.path.dirname(os.path.join(mutations.ROOT, mutation["file"]))]
    program = os.path.join(folder, mutation["test"])
    own = os.path.join(folder, library)
    link = re.sub(rf"(?<![\w/.-]){re.escape(library)}(?![\w.])", own, commands(mutation["test"])[-1])
    link = link.replace(f"-o tests/{mutation['test']} ", f"-s -o {program} ")
    if own not in link or program not in link:
        raise ValueError(f"{mutation['test']} is not linked with {library}: {link}")

    def rule(name, output, inputs, command, depfile=""):
        command = f"cd {BUILD} && {command}".replace("$", "$$")
        return (f"rule {name}_{number}\n  command = {command}\n  description = {name} {mutation['name'].replace('$', '$$')}\n"
                + (f"  depfile = {depfile}\n  deps = gcc\n" if depfile else "") + f"build {output}: {name}_{number} {' '.join(inputs)}\n")

    text = rule("compile", made, [source], shlex.join(words), made + ".d")
    text += rule("replace", own, [made, os.path.join(BUILD, library)],
                 f"cp {library} {own} && test $(ar t {own} | grep -cx {os.path.basename(made)}) = 1 && ar r {own} {made}")
    text += rule("link", program, [own, os.path.join(BUILD, "tests", mutation["test"])], link)
    return text, program


def passes(program, test_filter):
    """Whether these tests pass, and the first that does not."""
    environment = {**os.environ, "COLLAGE_BIN": os.path.join(BUILD, "collage"), "COLLAGE_SOURCE_DIR": mutations.ROOT,
                   "XDG_CACHE_HOME": os.path.join(FOLDER, "cache")}
    try:
        result = subprocess.run([program, f"--gtest_filter={test_filter}"], cwd=mutations.ROOT, env=environment,
                                capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return False, "a test that does not end"
    if result.returncode == 0:
        ran = re.search(r"^\[  PASSED  \] [1-9]", result.stdout, re.MULTILINE)
        return bool(ran), "no test ran"
    failed = re.findall(r"^\[  FAILED  \] ([^\s,]+\.[^\s,]+)", result.stdout, re.MULTILINE)
    began = re.findall(r"^\[ RUN      \] (\S+)", result.stdout, re.MULTILINE)
    return False, failed[0] if failed else f"the end of {began[-1]}" if began else f"exit status {result.returncode}"


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
    programs, text = {}, ""
    for number, mutation in chosen:
        added, programs[number] = rules(number, mutation)
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
            sound[test] = passes(os.path.join(BUILD, "tests", mutation["test"]), mutation["filter"])
        begin = time.monotonic()
        if not sound[test][0]:
            verdict = f"NOT TOLD: without the fault too fails {sound[test][1]}"
        elif not os.path.exists(programs[number]):
            verdict = f"NOT TOLD: does not build, see {os.path.join(FOLDER, 'build.log')}"
        else:
            passed, what = passes(programs[number], mutation["filter"])
            verdict = "MISSED" if passed else f"found by {what}"
        if not verdict.startswith("found"):
            missed.append(mutation["name"])
        print(f"{mutation['name']}\n    {mutation['test']} {mutation['filter']}: {verdict}, {time.monotonic() - begin:.0f} s",
              flush=True)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
