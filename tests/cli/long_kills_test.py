"""A hundred kills (-9) spread over one tuning run: the database stays whole, nothing acknowledged is lost, nothing finished is
measured again.

    python tests/cli/long_kills_test.py [KILLS]
"""

import sys
import tempfile

import tuning


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as folder:
        rows = tuning.kill_many_times(folder, kills, 20 * kills, lambda number: number * 7 % 50 / 1000)
    print(f"1 passed, 0 failed: {kills} kills, {rows} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
