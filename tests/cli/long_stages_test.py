"""The ten workloads at reduced size, as stages_test.py.

    python tests/cli/long_stages_test.py
"""

import sys

from stages_test import generate, main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or generate.WORKLOADS))
