"""against_test.py with every model of the suite."""

import os
import subprocess
import sys

if __name__ == "__main__":
    sys.exit(subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "against_test.py"), "1"], check=False).returncode)
