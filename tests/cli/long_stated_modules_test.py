"""The ten workloads at reduced size, as stated_modules_test.py.

    python tests/cli/long_stated_modules_test.py
"""

import sys

from stated_modules_test import generate, main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or generate.WORKLOADS))
