"""`make test` lists the slowest tests, what ctest skipped, each reason once, and how to run again what failed; it keeps ctest's
exit status and closing line.

    python tests/setup/test_summary_test.py

A scratch project of four tests goes through tools/setup/test.sh. Prints "2 passed, 0 failed" or what went wrong.
"""

import os
import re
import subprocess
import sys

ROOT = os.environ.get("COLLAGE_SOURCE_DIR") or os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests"))

import checks

# Each prints what GoogleTest does, or a test script of ours; `say` leaves semicolons alone.
PROJECT = r"""
cmake_minimum_required(VERSION 3.28)
project(scratch NONE)
enable_testing()
function(say name text)
  file(WRITE ${PROJECT_BINARY_DIR}/${name}.txt "${text}")
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E cat ${PROJECT_BINARY_DIR}/${name}.txt)
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
endfunction()
say(a.First "[ RUN      ] a.First\n/folder/file.cc:29: Skipped\nthis processor has no AVX-512 BF16\n\n[  SKIPPED ] a.First\n")
say(a.Second "[ RUN      ] a.Second\n/folder/file.cc:29: Skipped\nthis processor has no AVX-512 BF16\n\n[  SKIPPED ] a.Second\n")
say(silent "[  SKIPPED ] silent\n")
say(script "SKIPPED check_page: no browser\n3 passed, 0 failed\n")
say(passes "all is well: Skipped steps are none of its business\n")
if(FAILS)
  add_test(NAME fails COMMAND ${CMAKE_COMMAND} -E false)
endif()
"""


def results_of(folder, fails):
    with open(os.path.join(folder, "CMakeLists.txt"), "w") as file:
        file.write(PROJECT)
    build = os.path.join(folder, "build")
    cmake = os.path.join(ROOT, "build", "env", "bin", "cmake")
    subprocess.run([cmake, "-S", folder, "-B", build, f"-DFAILS={fails}"], check=True, stdout=subprocess.DEVNULL)
    return subprocess.run(["bash", os.path.join(ROOT, "tools", "setup", "test.sh"), "-j", "2", "--test-dir", build],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def check_listing(folder):
    ran = results_of(folder, "OFF")
    told = ran.stdout.splitlines()
    assert ran.returncode == 0, ran.stdout
    start = told.index("4 skipped, because:")
    assert told[start + 1] == "     2  this processor has no AVX-512 BF16  (a.First, a.Second)", ran.stdout
    assert sorted(told[start + 2:start + 4]) == ["     1  no browser  (script: check_page)", "     1  no reason was given  (silent)"]
    assert told[start + 4:] == ["", "100% tests passed, 0 tests failed out of 5"], ran.stdout
    assert told[:start].count(told[-1]) == 1, ran.stdout  # ctest said so too
    times = [line for line in told[:start] if re.fullmatch(r" +\d+\.\d s  (a\.First|a\.Second|silent|script|passes)", line)]
    seconds = [float(line.split()[0]) for line in times]
    assert len(times) == 5 and seconds == sorted(seconds, reverse=True), ran.stdout


def check_failure(folder):
    ran = results_of(folder, "ON")
    told = ran.stdout.splitlines()
    assert ran.returncode == 8, ran.stdout  # ctest's
    assert told[-1] == "83% tests passed, 1 tests failed out of 6" and told.count(told[-1]) == 2, ran.stdout
    assert told[-2].startswith("again: ") and told[-2].endswith("--output-on-failure -R '^fails$'"), ran.stdout


if __name__ == "__main__":
    sys.exit(checks.run([check_listing, check_failure], sys.argv[1:]))
