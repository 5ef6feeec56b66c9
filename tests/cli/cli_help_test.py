"""What the command says of itself, and flags that come from the environment or from collage.toml.

    python tests/cli/cli_help_test.py

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]

import checks
import command
import tiny_models


def run(folder, *arguments, status=0, **environment):
    result = command.run(arguments, folder, cache=os.path.join(folder, "cache"), **environment)
    assert result.returncode == status, f"exit status {result.returncode}: {result.stderr or result.stdout}"
    return result.stdout if status == 0 else result.stderr


def verbs(folder):
    text = run(folder, "help")
    return re.findall(r"^  (\w+) +\S", text[text.lower().index("subcommands:"):], re.MULTILINE)


def check_help(folder):
    """Every sub-command explains itself with examples that call it; none is missing from the manual."""
    found = verbs(folder)
    assert {"run", "bench", "verify", "explain", "view", "diff", "tune", "db", "help"} <= set(found) and "worker" not in found, found
    manual = run(folder, "help", "--man")
    for verb in found:
        text = run(folder, "help", verb)
        assert f"collage help {verb}" in text or f"collage {verb}" in text or "source <(collage help" in text, text
        assert "Examples:" in text, text
        assert f'.SH "COLLAGE {verb}"' in manual, verb
    assert "there is no sub-command 'cake'" in run(folder, "help", "cake", status=2)


def check_completion(folder):
    """Bash completes sub-commands, their flags and files."""
    script = run(folder, "help", "--completion")
    tiny_models.write(folder, "completion.bash", script)

    def complete(*words):
        ask = (f"source completion.bash; COMP_WORDS=({' '.join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}; _collage; "
               "printf '%s\\n' \"${COMPREPLY[@]}\"")
        return subprocess.run(["bash", "-c", ask], cwd=folder, capture_output=True, text=True, check=True).stdout.split()

    assert complete("collage", "exp") == ["explain"]
    assert "--layerwise" in complete("collage", "verify", "--la") and "--layerwise" not in complete("collage", "run", "--la")
    assert "prune" in complete("collage", "db", "pr")
    assert complete("collage", "run", "net.on") == ["net.onnx"]


def check_other_shells(folder):
    """The scripts of zsh and fish know every sub-command and flag, with what they mean, and are none of bash's."""
    found = verbs(folder)
    assert run(folder, "help", "--completion", "bash") == run(folder, "help", "--completion")
    for shell, flag, valued in (("zsh", "'*--layerwise[", "'*--expect[{}]:value:_files'"),
                                ("fish", "complete -c collage -n '__fish_seen_subcommand_from verify' -l layerwise -d ",
                                 "-l expect -r -d '{}'")):
        script = run(folder, "help", "--completion", shell)
        meaning = re.search(r"--expect \S+(?: Excludes: --\S+)*\s+(\S.*)", run(folder, "help", "verify"))
        assert flag in script and valued.split("{}")[0] in script, script
        assert meaning and meaning[1].split()[0] in script.split(valued.split("{}")[0])[1][:200], (shell, meaning)
        assert all(re.search(rf"\b{verb}\b", script) for verb in found), (shell, found)
        tiny_models.write(folder, "completion", script)
        if shutil.which(shell):
            checked = subprocess.run([shell, "-n", "completion"], cwd=folder, capture_output=True, text=True)
            assert checked.returncode == 0 and not checked.stderr, checked


def check_settings(folder):
    """The command line wins, then the environment, then the file; in it a table is for one sub-command."""
    tiny_models.write(folder, "collage.toml", 'threads = 1\nshapes = ["x=1", "y=2"]\n[bench]\nduration = 0.5\nlayers = true\n')
    assert "threads = '1'" in run(folder, "run", "net.onnx", "--dump-config").replace('"', "'")
    assert "threads = '2'" in run(folder, "run", "net.onnx", "--dump-config", COLLAGE_THREADS="2").replace('"', "'")
    assert "threads = '3'" in run(folder, "run", "net.onnx", "--dump-config", "--threads", "3", COLLAGE_THREADS="2").replace('"', "'")
    # What excludes a flag that is given is not taken from anywhere else.
    assert "absent.json" not in run(folder, "run", "net.onnx", "--dump-config", "--targets", "native", COLLAGE_CONFIG="absent.json")
    dumped = run(folder, "bench", "net.onnx", "--dump-config").replace('"', "'")
    assert "duration = '0.5'" in dumped and "layers = true" in dumped and "'x=1', 'y=2'" in dumped, dumped
    assert "duration" not in run(folder, "run", "net.onnx", "--dump-config")
    # What is dumped is a settings file that gives the same flags.
    tiny_models.write(folder, "collage.toml", dumped)
    assert run(folder, "bench", "net.onnx", "--dump-config").replace('"', "'") == dumped
    for text, words in (("thread = 1\n", "no sub-command has a flag --thread"), ("[cake]\nx = 1\n", "no sub-command 'cake'"),
                        ("[run]\nduration = 1\n", "run has no flag --duration"), ("threads = \n", "line 1"),
                        ("threads = 1979-05-27\n", "is no text, number")):
        tiny_models.write(folder, "collage.toml", text)
        said = run(folder, "run", "net.onnx", "--dump-config", status=2)
        assert words in said and "collage.toml" in said and said.count("\n") == 1, said
    os.remove(os.path.join(folder, "collage.toml"))


# What may name a file that is written or opened for writing, or code that is run; what decides what computes, from which values, and how
# exact it must be.
TARGETS = {"targets": "native", "exclude": "openvino", "pin": "a=native", "constant": "a=b", "max-error": 0.5, "data-root": "/",
           "require-signature": "evil"}
REFUSED = (("run", {"json": "evil", "save-outputs": "evil", "db": "evil", "plugin": "evil", "inputs": "x=evil", "seed": 7, **TARGETS}),
           ("run", {"accuracy": "strict", "devices": "cpu:0"}), ("run", {"config": "evil"}),
           ("bench", {"json": "evil", "profile": "evil", "benchmark-out": "evil", "compare": "onnxruntime"}), ("bench", {"against": "evil"}),
           ("verify", {"json": "evil", "expect": "evil", **TARGETS}), ("view", {"output": "evil", "db": "evil"}),
           ("compile", {"output": "evil.collage", "sign": "evil"}), ("partition", {"json": "evil"}), ("inspect", {"json": "evil", "plugin": "evil"}),
           ("tune", {"db": "evil", "plugin": "evil"}), ("db", {"db": "evil"}), ("diff", {"smallest-effect": 50}))
REQUIRED = ("output",)  # given on the command line where the file is not to set it


def check_settings_of_others(folder):
    """A collage.toml in the folder at hand, which somebody else may have put there, names no file and weakens nothing; the user's own may."""
    own = os.path.join(folder, "own", "collage")
    os.makedirs(own, exist_ok=True)
    here, there = os.path.join(folder, "collage.toml"), os.path.join(own, "collage.toml")
    positional = {"diff": ("a.json", "b.json"), "db": ("info",)}
    tiny_models.write(folder, "evil", "")  # what --against names must be there

    def ask(arguments):
        result = command.run(arguments, folder, cache=os.path.join(folder, "cache"), XDG_CONFIG_HOME=os.path.join(folder, "own"))
        assert result.returncode == 0, result.stderr
        return result.stdout, result.stderr

    for verb, flags in REFUSED:
        arguments = (verb, *positional.get(verb, ("net.onnx",)), "--dump-config")
        extra = ("--output", "given.collage") if "output" in flags else ()
        for place, taken in ((here, False), (there, True)):
            tiny_models.write(folder, os.path.relpath(place, folder), "".join(f"{flag} = {json.dumps(value)}\n" for flag, value in flags.items()))
            said, warned = ask((*arguments, *(() if taken else extra)))
            for flag, value in flags.items():
                if taken or flag not in REQUIRED:
                    assert (re.search(f"^{flag} = .*{value}", said, re.MULTILINE) is not None) == taken, f"{verb} {flag}: {said}"
                    assert taken or re.search(f"not taken from .*{flag}", warned), warned
            assert warned.count("\n") == (0 if taken or set(flags) <= set(REQUIRED) else 1), warned
            os.remove(place)
    # In a table of the sub-command too; a flag given on the command line is taken, and nothing is said.
    tiny_models.write(folder, "collage.toml", '[run]\njson = "evil.json"\n')
    result = command.run(("run", "net.onnx", "--targets", "reference", "--progress", "none"), folder, cache=os.path.join(folder, "cache"))
    assert result.returncode == 0 and "json" in result.stderr and not os.path.exists(os.path.join(folder, "evil.json")), result
    assert not ask(("run", "net.onnx", "--json", "mine.json", "--dump-config"))[1]
    # What it set is said in one line, whatever it would like to keep back, and without what a terminal obeys.
    tiny_models.write(folder, "collage.toml", 'quiet = true\nthreads = 1\ndim = ["a=\\u001b[2J", "b=2"]\n')
    said = ask(("run", "net.onnx", "--dump-config"))[1]
    assert "collage.toml in the folder at hand sets threads = 1, dim = a=?[2J, b=2; not taken from it: quiet;" in said.replace("dim = a=?[2J, b=2, threads = 1", "threads = 1, dim = a=?[2J, b=2"), said
    assert said.count("\n") == 1, said
    # It does not stand in the place of the user's own, which stays in force beneath it.
    tiny_models.write(folder, os.path.relpath(there, folder), 'accuracy = "strict"\nthreads = 2\npatience = 3\n')
    dumped = ask(("run", "net.onnx", "--dump-config"))[0].replace('"', "'")
    for line in ("accuracy = 'strict'", "threads = '1'", "patience = '3'"):
        assert line in dumped, dumped
    os.remove(here)
    os.remove(there)


def check_documented(folder):
    """docs/command.md names every flag there is and no other; those of its first table are of every sub-command with a model."""
    of_verb = {verb: set(re.findall(r"--[a-z][a-z-]+", words))
               for verb, words in re.findall(r'^    (\w+)\) words="(.*)" ;;$', run(folder, "help", "--completion"), re.MULTILINE)}
    nested = [run(folder, "db", verb, "--help") for verb in ("info", "export", "import", "prune", "verify")]
    known = set().union(*of_verb.values(), *(re.findall(r"^  (?:-\w,)?(--[a-z][a-z-]+)", text, re.MULTILINE) for text in nested))
    with open(os.path.join(command.ROOT, "docs", "command.md"), encoding="utf-8") as file:
        document = file.read()
    named = set(re.findall(r"--[a-z][a-z-]+", document))
    # -o, -v and -q are named by their short forms; these two every command has.
    missing = known - named - {"--output", "--verbose", "--quiet", "--help", "--version"}
    assert not missing, f"not in docs/command.md: {sorted(missing)}"
    assert named <= known, f"no flag: {sorted(named - known)}"
    table = re.search(r"^Of every sub-command with a `MODEL`:\n\n((?:\|.*\n)+)", document, re.MULTILINE).group(1)
    general = set(re.findall(r"^\| `(--[a-z-]+)", table, re.MULTILINE))
    assert len(general) > 10, general
    for verb in ("run", "bench", "verify", "partition", "tune", "explain", "view"):
        assert general <= of_verb[verb], f"{verb} lacks {sorted(general - of_verb[verb])}"


CHECKS = (check_help, check_completion, check_other_shells, check_settings, check_settings_of_others, check_documented)


def prepare(folder):
    onnx.save(tiny_models.relu_model(), os.path.join(folder, "net.onnx"))
    return folder


if __name__ == "__main__":
    sys.exit(checks.run(CHECKS, sys.argv[1:], prepare))
