"""The package as the build leaves it, for the scripts of this folder: importing this puts it on the path. Takes the build that COLLAGE_BIN lies in
(default build/release)."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
BUILD = os.path.dirname(os.environ.get("COLLAGE_BIN") or os.path.join(ROOT, "build", "release", "collage"))
sys.path[:0] = [os.path.join(BUILD, "python"), os.path.join(ROOT, "tests")]
