"""What the command says of itself, and that nothing but the command line sets its flags.

    python tests/cli/cli_help_test.py

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import os
import re
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


def flags(text):
    return set(re.findall(r"^  (--?[a-z][a-z-]*)", text.split("Examples:")[0], re.MULTILINE))


def check_help(folder):
    """Every sub-command explains itself with examples that call it."""
    found = verbs(folder)
    assert {"run", "bench", "verify", "explain", "view", "diff", "tune", "fleet", "worker", "db", "help"} <= set(found), found
    for verb in found:
        text = run(folder, "help", verb)
        assert f"collage help {verb}" in text or f"collage {verb}" in text or "collage help bench" in text, text
        assert "Examples:" in text, text
    assert "there is no sub-command 'cake'" in run(folder, "help", "cake", status=2)


def check_completion(folder):
    """Bash completes sub-commands, their flags and files."""
    script = os.path.join(command.ROOT, "tools", "collage", "completion.bash")

    def complete(*words):
        ask = (f"source '{script}'; COMP_WORDS=({' '.join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}; _collage; "
               "printf '%s\\n' \"${COMPREPLY[@]}\"")
        return subprocess.run(["bash", "-c", ask], cwd=folder, capture_output=True, text=True, check=True).stdout.split()

    assert complete(command.COLLAGE, "exp") == ["explain"]
    assert complete(command.COLLAGE, "verify", "--la") == ["--layerwise"] and not complete(command.COLLAGE, "run", "--la")
    assert "prune" in complete(command.COLLAGE, "db", "pr")
    assert complete(command.COLLAGE, "run", "net.on") == ["net.onnx"]


def check_nothing_else_sets_flags(folder):
    """A collage.toml in the folder at hand, which somebody else may have put there, and variables named like flags change nothing."""
    tiny_models.write(folder, "collage.toml", 'json = "evil.json"\n[run]\naccuracy = "cake"\nexpect = "evil"\nthreads = 0\n[\n')
    result = command.run(("run", "net.onnx", "--targets", "reference", "--threads", "1"), folder, cache=os.path.join(folder, "cache"),
                         XDG_CONFIG_HOME=folder, COLLAGE_THREADS="0", COLLAGE_ACCURACY="cake", COLLAGE_JSON="evil.json", COLLAGE_PLUGIN="evil.so")
    assert result.returncode == 0 and result.stderr == "" and not os.path.exists(os.path.join(folder, "evil.json")), result
    os.remove(os.path.join(folder, "collage.toml"))


def check_documented(folder):
    """docs/command.md names every flag there is and no other; those of its first table are of every sub-command with a model."""
    of_verb = {verb: flags(run(folder, "help", verb)) for verb in verbs(folder)}
    nested = [flags(run(folder, "db", verb, "--help")) for verb in ("info", "export", "import", "prune", "verify")]
    known = set().union(*of_verb.values(), *nested, flags(run(folder, "--help")))
    with open(os.path.join(command.ROOT, "docs", "command.md"), encoding="utf-8") as file:
        document = file.read()
    named = set(re.findall(r"--[a-z][a-z-]+", document)) | set(re.findall(r"`(-[a-z])\b", document))
    missing = known - named - {"-h"}
    assert not missing, f"not in docs/command.md: {sorted(missing)}"
    # Of a shell that is shown, not of the command.
    assert named <= known | {"-vv"}, f"no flag: {sorted(named - known)}"
    table = re.search(r"^Flags of every sub-command with a `MODEL`:\n\n((?:\|.*\n)+)", document, re.MULTILINE).group(1)
    general = set(re.findall(r"^\| `(--[a-z-]+)", table, re.MULTILINE))
    assert len(general) > 10, general
    for verb in ("run", "bench", "verify", "partition", "tune", "explain", "view"):
        assert general <= of_verb[verb], f"{verb} lacks {sorted(general - of_verb[verb])}"


def kernels_of(text):
    """The lines below each backend's name."""
    found, own = {}, None
    for line in text.splitlines():
        if not line.startswith(" "):
            own = found.setdefault(line, [])
        elif own is not None:
            own.append(line.rstrip())
    return found


def check_kernels(folder):
    """`targets kernels` lists what every backend's kernels are; of those that are in every build it says what golden/kernels.txt has."""
    printed = kernels_of(run(folder, "targets", "kernels"))
    with open(os.path.join(HERE, "golden", "kernels.txt"), encoding="utf-8") as file:
        golden = kernels_of(file.read())
    assert set(golden) >= {"native", "memory", "reference"}
    for backend, lines in golden.items():
        assert printed.get(backend) == lines, f"{backend}:\n" + "\n".join(printed.get(backend, ["not there"]))
    available = {line.split()[0] for line in run(folder, "targets").splitlines()[1:] if line.split()[1] in ("available", "unavailable")}
    assert set(printed) == available and all(printed.values()), f"{sorted(printed)} of {sorted(available)}"
    assert "cakes" in run(folder, "targets", "cakes", status=2)


CHECKS = (check_help, check_completion, check_nothing_else_sets_flags, check_documented, check_kernels)


def prepare(folder):
    onnx.save(tiny_models.relu_model(), os.path.join(folder, "net.onnx"))
    return folder


if __name__ == "__main__":
    sys.exit(checks.run(CHECKS, sys.argv[1:], prepare))
