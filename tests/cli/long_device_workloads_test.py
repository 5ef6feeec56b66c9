"""device_workloads_test.py on an OpenCL device, where `collage targets` lists one.

    python tests/cli/long_device_workloads_test.py [NAME...]
"""

import re
import sys
import tempfile

import command
from device_workloads_test import NAMES, main

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        listed = command.run(["targets"], cache, cache=cache).stdout
    if not re.search("^opencl +available", listed, re.MULTILINE):
        print("skipped: no OpenCL device")
        sys.exit(0)
    sys.exit(main(sys.argv[1:] or NAMES, devices=("opencl",)))
