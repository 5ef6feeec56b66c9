"""What the machine lacks is an error or of no matter, and never the end of the process, nor a property of a kernel.

    python tests/cli/cli_limits_test.py
"""

import contextlib
import glob
import json
import os
import resource
import subprocess
import sys
import time

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import command
import control_groups
import tiny_models

# Mounts a small file system that is full, and runs what follows with its temporary files there.
ON_A_FULL_DISK = """
mount -t tmpfs -o size=64k none "$0" || exit 77
dd if=/dev/zero of="$0/fill" bs=4k status=none 2>/dev/null
TMPDIR="$0" exec "$@"
"""


def run_with(prefix, arguments, folder, **options):
    environment = dict(os.environ, COLLAGE_CACHE=os.path.join(folder, "cache"))
    return subprocess.run([*prefix, command.COLLAGE, *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300, **options)


def small_model(folder):
    onnx.save(tiny_models.small_net(), os.path.join(folder, "net.onnx"))
    return ["run", "net.onnx", "--targets", "native", "--effort", "fast", "--db", "costs.db", "--json", "report.json"]


def report_of(folder):
    with open(os.path.join(folder, "report.json")) as file:
        return json.load(file)


def expect_native(folder):
    report = report_of(folder)
    assert report["estimates"]["crashed"] == report["estimates"]["lacking"] == 0, report["estimates"]
    assert any(kernel["target"].startswith("native") for kernel in report["kernels"]), report["kernels"]


def check_full_folder_of_temporary_files(folder):
    """Kernels are compiled all the same: none is refused, in this run or the next."""
    arguments, full = small_model(folder), os.path.join(folder, "full")
    os.mkdir(full)
    prefix = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c", ON_A_FULL_DISK, full]
    result = run_with(prefix, arguments, folder)
    if result.returncode in (1, 77) and ("unshare" in result.stderr or "mount" in result.stderr):
        print("SKIPPED full disk: no file system may be mounted here")
        return
    assert result.returncode == 0, f"{result.returncode}: {result.stderr}"
    expect_native(folder)
    assert run_with([], [*arguments, "--frozen-costs"], folder).returncode == 0


def check_missing_folder_of_temporary_files(folder):
    result = run_with(["env", "TMPDIR=/nonexistent"], small_model(folder), folder)
    assert result.returncode == 0, f"{result.returncode}: {result.stderr}"
    expect_native(folder)


def limited(what, amount):
    return lambda: resource.setrlimit(what, (amount, amount))


def check_little_address_space(folder):
    """No library of a backend that is off is loaded, let alone one that waits for memory for ever."""
    result = run_with([], ["--version"], folder, preexec_fn=limited(resource.RLIMIT_AS, 500 << 20))
    assert result.returncode == 0, f"{result.returncode}: {result.stderr}"
    linked = subprocess.run(["ldd", command.COLLAGE], capture_output=True, text=True).stdout
    for library in ("openblas", "OpenCL", "clblast", "Clp", "Cbc"):
        assert library not in linked, linked


def check_too_little_for_a_library(folder):
    """One that was asked for and cannot be had is an error."""
    result = run_with([], ["run", *small_model(folder)[1:2], "--targets", "blas"], folder,
                      preexec_fn=limited(resource.RLIMIT_AS, 500 << 20))
    assert result.returncode == 5, f"{result.returncode}: {result.stderr}"
    assert "more memory than this process may have" in result.stderr, result.stderr


def check_quota_around_the_own_group(folder):
    """The quota of a service or a job counts for the groups inside it, in which its processes are."""
    with control_groups.limited("cpu") as enter:
        if enter is None:
            return
        result = run_with([], ["targets"], folder, preexec_fn=enter)
    assert result.returncode == 0, result.stderr
    assert ", 1 cores for this process" in result.stdout.splitlines()[0], result.stdout


def limits_of_children(process):
    """The bytes of data that each process may have that it started."""
    found = set()
    for task in glob.glob(f"/proc/{process.pid}/task/*/children"):
        with contextlib.suppress(OSError):  # one that has ended
            with open(task) as file:
                children = file.read().split()
            for child in children:
                with open(f"/proc/{child}/limits") as file:
                    found |= {line.split()[3] for line in file if line.startswith("Max data size")}
    return found


def check_memory_of_workers(folder):
    """What tries kernels may have four fifths of what the group around it may."""
    expected, found = str(control_groups.MEMORY // 5 * 4), set()
    with control_groups.limited("memory") as enter:
        if enter is None:
            return
        with subprocess.Popen([command.COLLAGE, *small_model(folder)], cwd=folder, env=dict(os.environ, COLLAGE_CACHE=os.path.join(folder, "cache")),
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=enter) as process:
            while process.poll() is None:
                found |= limits_of_children(process)
                time.sleep(0.005)
    assert process.returncode == 0 and expected in found, (process.returncode, expected, found)


CHECKS = (check_full_folder_of_temporary_files, check_missing_folder_of_temporary_files, check_little_address_space,
          check_too_little_for_a_library, check_quota_around_the_own_group, check_memory_of_workers)

if __name__ == "__main__":
    sys.exit(checks.run(CHECKS, sys.argv[1:]))
