"""Runs the checks of a test script: each in an empty folder of its own, all of them to the end.

A check is a function of what `prepare` makes of its folder (by default the folder's path); it fails by raising.
"""

import tempfile
import traceback


def run(checks, names=(), prepare=lambda folder: folder):
    """Runs `checks`, functions or (name, function) pairs, or those of them that `names` holds; gives the exit status."""
    named = [check if isinstance(check, tuple) else (check.__name__, check) for check in checks]
    chosen = [(name, check) for name, check in named if not names or name in names]
    failed = 0
    for name, check in chosen:
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(prepare(folder))
            except Exception as wrong:
                failed += 1
                told = isinstance(wrong, AssertionError) and str(wrong)
                print(f"FAILED {name}: {wrong if told else traceback.format_exc()}")
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed or not chosen else 0


def once_settled(check, tries=5):
    """`check` compares what several commands chose or predict. A command measures again what an earlier one measured while the machine
    was disturbed, at most three times, so a difference has to show `tries` times."""
    for _ in range(tries - 1):
        try:
            return check()
        except AssertionError:
            pass
    return check()
