"""Every kind of bad input gives one line on stderr, the documented exit status, and leaves nothing behind.

    python tests/cli/cli_errors_test.py [--update]

golden/errors.txt holds the cases: a command, its exit status and its message, which may hold `<...>` for what depends on
the build. They run in a folder with the files of tiny_models.write_bad_files. --update writes what the command says now, for
review. Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import os
import re
import shlex
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import command
import tiny_models

GOLDEN = os.path.join(HERE, "golden", "errors.txt")
OUTPUTS = ["--json", "report.json", "--save-outputs", "outputs"]  # neither may appear when a command fails


def parse(text):
    """[(heading lines, arguments, status, message)]"""
    cases, heading = [], []
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("$ "):
            status, _, message = next(lines).partition(" ")
            cases.append((heading, line[2:], status, message))
            heading = []
        else:
            heading.append(line)
    return cases


def matches(pattern, text):
    return re.fullmatch(".*".join(re.escape(part) for part in pattern.split("<...>")), text) is not None


class Folder:
    """A folder of bad files to run the command in, with a cache beside it."""

    def __enter__(self):
        self._temporary = tempfile.TemporaryDirectory()
        self.path = os.path.join(self._temporary.name, "work")
        self.cache = os.path.join(self._temporary.name, "cache")
        os.mkdir(self.path)
        tiny_models.write_bad_files(self.path)
        self.before = command.listing(self.path)
        return self

    def __exit__(self, *_):
        self._temporary.cleanup()

    def run(self, arguments, **options):
        return command.run(arguments, self.path, cache=self.cache, **options)

    def check_untouched(self):
        after = command.listing(self.path)
        assert after == self.before, f"files changed: {set(after.items()) ^ set(self.before.items())}"


def check_golden(folder, line, status, message):
    result = folder.run(shlex.split(line))
    assert result.stdout == "", f"stdout: {result.stdout!r}"
    assert result.stderr.endswith("\n") and result.stderr.count("\n") == 1, f"not one line: {result.stderr!r}"
    assert str(result.returncode) == status, f"exit status {result.returncode}, not {status}: {result.stderr!r}"
    assert matches(message, result.stderr[:-1]), f"\n  said   {result.stderr[:-1]}\n  wanted {message}"
    folder.check_untouched()


def update(cases):
    with Folder() as folder:
        text = ""
        for heading, line, _, message in cases:
            result = folder.run(shlex.split(line))
            said = result.stderr.rstrip("\n")
            said = message if matches(message, said) else said
            text += "".join(h + "\n" for h in heading) + f"$ {line}\n{result.returncode} {said}\n"
    with open(GOLDEN, "w") as file:
        file.write(text)


def check_failures_write_nothing():
    """A command that fails late, after its inputs were read, leaves neither report nor outputs, not even in part."""
    with Folder() as folder:
        for arguments in (["run", "text.onnx"], ["run", "good.onnx", "--inputs", "x=shape.npy"],
                          ["run", "good.onnx", "--frozen-costs"], ["run", "unknown.onnx"],
                          ["verify", "good.onnx", "--expect", "folder.onnx"], ["bench", "good.onnx", "--targets", "nowhere"]):
            result = folder.run([*arguments, *OUTPUTS])
            assert result.returncode != 0, arguments
            folder.check_untouched()


def check_dimension_can_be_pasted():
    """What the message about a dynamic dimension says to give makes the command succeed."""
    with Folder() as folder:
        for name, flag in (("dynamic.onnx", "--dim"), ("unnamed.onnx", "--shapes")):
            said = folder.run(["run", name]).stderr
            given = re.search(flag + r" \S+", said).group(0).split()
            result = folder.run(["run", name, "--targets", "reference", *given])
            assert result.returncode == 0, result.stderr


def check_external_data_is_not_read_outside():
    """Data outside the model's folder is refused though it is there."""
    with Folder() as folder:
        tiny_models.write(os.path.dirname(folder.path), "outside.data", b"\0" * 16)
        result = folder.run(["run", "external_escape.onnx"])
        assert result.returncode == 3 and "leaves the model's folder" in result.stderr, result.stderr
        os.symlink(os.path.join("..", "outside.data"), os.path.join(folder.path, "absent.data"))
        result = folder.run(["run", "external_missing.onnx"])
        assert result.returncode == 3 and result.stderr.count("\n") == 1, result.stderr


def check_unwritable_cache():
    """Wherever the cache is said to be: one warning, and the run succeeds."""
    with Folder() as folder:
        inside_a_file = os.path.join(folder.path, "good.npy", "cache")
        for place in ({"COLLAGE_CACHE": inside_a_file}, {"XDG_CACHE_HOME": inside_a_file}, {"HOME": inside_a_file},
                      {"COLLAGE_CACHE": "/proc/nowhere"}, {}):
            result = command.run(["run", "good.onnx", "--targets", "reference"], folder.path, **place)
            assert result.returncode == 0 and result.stdout, (place, result)
            assert result.stderr.count("\n") == 1 and "warning" in result.stderr, (place, result.stderr)
        given = folder.run(["run", "good.onnx", "--targets", "reference", "--db", inside_a_file])
        assert given.returncode == 0 and given.stderr.count("\n") == 1 and "warning" in given.stderr, given
        folder.check_untouched()


def check_damaged_database():
    """A cost database that is none is moved aside with one warning; the next run finds a good one."""
    with Folder() as folder:
        tiny_models.write(folder.path, "costs.db", "This is no database, but long enough to be taken for one. " * 99)
        arguments = ["run", "good.onnx", "--targets", "reference", "--db", "costs.db"]
        first, second = folder.run(arguments), folder.run(arguments)
        assert first.returncode == 0 and first.stderr.count("\n") == 1 and "moved to" in first.stderr, first
        assert second.returncode == 0 and second.stderr == "", second
        assert os.path.exists(os.path.join(folder.path, "costs.db.aside1"))


def check_frozen_costs():
    """An empty database is exit status 8; once measured, the same command succeeds."""
    with Folder() as folder:
        arguments = ["run", "good.onnx", "--targets", "reference", "--effort", "max"]
        for flags in ([], ["--db", "new.db"]):
            frozen = folder.run([*arguments, *flags, "--frozen-costs"])
            assert frozen.returncode == 8 and frozen.stderr.count("\n") == 1 and not frozen.stdout, frozen
        assert folder.run(arguments).returncode == 0
        assert folder.run([*arguments, "--frozen-costs"]).returncode == 0


def check_broken_worker():
    """A measuring worker that does not work is one line and status 5, and is not held against the model later."""
    with Folder() as folder:
        arguments = ["run", "good.onnx"]
        for program in ("/bin/false", "/bin/true"):
            result = folder.run(arguments, COLLAGE_WORKER=program)
            assert result.returncode == 5 and result.stderr.count("\n") == 1 and program in result.stderr, result
        assert folder.run(["run", "good.onnx"], COLLAGE_WORKER="/absent").returncode == 2
        result = folder.run([*arguments, "-v"])
        assert result.returncode == 0 and "does not work" not in result.stderr, result


def check_full_disk():
    """Results that cannot be written are an error."""
    with Folder() as folder, open("/dev/full", "w") as full:
        result = folder.run(["targets"], stdout=full)
        assert result.returncode == 1 and result.stderr == "collage: cannot write the results: No space left on device\n", result


def check_help_and_version():
    """They go to stdout, with exit status 0."""
    with Folder() as folder:
        for arguments in (["--help"], ["run", "--help"], ["--version"]):
            result = folder.run(arguments)
            assert result.returncode == 0 and result.stdout and not result.stderr, result
        assert re.fullmatch(r"collage \d+\.\d+\.\d+\n", folder.run(["--version"]).stdout)


def main():
    with open(GOLDEN) as file:
        cases = parse(file.read())
    if "--update" in sys.argv[1:]:
        update(cases)
        return 0
    passed = failed = 0

    def attempt(name, check, *arguments):
        nonlocal passed, failed
        try:
            check(*arguments)
            passed += 1
        except Exception as wrong:
            failed += 1
            print(f"FAILED {name}: {wrong if isinstance(wrong, AssertionError) and str(wrong) else traceback.format_exc()}")

    with Folder() as folder:
        for _, line, status, message in cases:
            attempt(f"collage {line}", check_golden, folder, line, status, message)
    for check in (check_failures_write_nothing, check_dimension_can_be_pasted, check_external_data_is_not_read_outside,
                  check_unwritable_cache, check_damaged_database, check_frozen_costs, check_broken_worker,
                  check_full_disk, check_help_and_version):
        attempt(check.__name__, check)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
