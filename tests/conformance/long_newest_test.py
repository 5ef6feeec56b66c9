"""The newest node tests (newest_test.py) through the whole pipeline on each backend."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import newest_test

if __name__ == "__main__":
    sys.exit(newest_test.run("conformance_long_test", "*EachBackend*"))
