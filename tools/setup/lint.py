#!/usr/bin/env python3
"""Second compiler's opinion: clang++-14 parses every file with all warnings as errors, then clang-tidy-14 checks it.

lint.py BUILD_DIR [FILE...]: BUILD_DIR holds the compile_commands.json of the `clang` preset; FILEs restrict the run to
paths that contain one of them. Exit status 1 if anything was found.
"""

import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys


def lint(entry, build_dir):
    """The complaints about one file of the compilation database, as text."""
    arguments = shlex.split(entry["command"])
    if os.path.basename(arguments[0]) == "ccache":
        arguments = arguments[1:]
    if "-o" in arguments:
        at = arguments.index("-o")
        del arguments[at : at + 2]
    parse = subprocess.run(
        arguments + ["-fsyntax-only"], cwd=entry["directory"], capture_output=True, text=True, check=False
    )
    if parse.returncode != 0:
        return parse.stderr
    tidy = subprocess.run(
        ["clang-tidy-14", "--quiet", "-p", build_dir, entry["file"]], capture_output=True, text=True, check=False
    )
    return tidy.stdout if tidy.returncode != 0 or tidy.stdout.strip() else ""


def new_findings(text, seen):
    """The findings of text that no earlier file showed: a header's are found again from every file that includes it."""
    fresh = []
    for finding in re.split(r"(?m)^(?=\S+:\d+:\d+: (?:error|warning|fatal error):)", text):
        if finding.strip() and finding not in seen:
            seen.add(finding)
            fresh.append(finding.rstrip())
    return "\n".join(fresh)


def main():
    build_dir, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    with open(os.path.join(build_dir, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    root = os.getcwd()
    entries = [
        e
        for e in entries
        if e["file"].startswith(root)
        and not e["file"].startswith(os.path.join(root, "build") + os.sep)
        and (not wanted or any(w in e["file"] for w in wanted))
    ]
    bad, seen = 0, set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for entry, found in zip(entries, pool.map(lambda e: lint(e, build_dir), entries)):
            if found:
                bad += 1
                fresh = new_findings(found, seen)
                if fresh:
                    print(f"== {os.path.relpath(entry['file'], root)}\n{fresh}")
    print(f"lint: {len(entries)} files, {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
