"""Runs the command under test with an environment of its own."""

import os
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
COLLAGE = os.environ.get("COLLAGE_BIN") or os.path.join(ROOT, "build", "release", "collage")
CACHE_VARIABLES = ("COLLAGE_CACHE", "XDG_CACHE_HOME", "HOME")


def run(arguments, cwd, cache=None, timeout=600, stdout=subprocess.PIPE, **environment):
    """The finished process. `cache`: COLLAGE_CACHE; without it only the variables in `environment` name a cache."""
    variables = {k: v for k, v in os.environ.items() if k not in CACHE_VARIABLES}
    variables |= {"COLLAGE_PYTHON": sys.executable} | ({"COLLAGE_CACHE": cache} if cache else {})
    return subprocess.run([COLLAGE, *arguments], cwd=cwd, env=variables | environment, stdin=subprocess.DEVNULL,
                          stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=timeout)


def listing(folder):
    """Every path below a folder, with its size."""
    paths = {}
    for base, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(base, name)
            paths[os.path.relpath(path, folder)] = os.path.getsize(path) if name in files else None
    return paths
