"""Summarises a run of ctest, from the results that it wrote as JUnit XML: the slowest tests, what was skipped (how many, and each
reason once), and for each test that failed a line that runs it again.

    python tools/setup/test_summary.py build/release/test_results.xml

A test counts as skipped that ctest calls so, with the reason that it printed; so does a part of a test that passed, which printed
a line "SKIPPED what: reason" (tests/checks.py), or a test inside a program (GoogleTest's "Skipped" with the reason below).
A skipped test without a reason is listed as such.
"""

import collections
import os
import re
import shlex
import sys
import xml.etree.ElementTree as ElementTree

GOOGLE_TEST = re.compile(r"^.+:\d+: Skipped\n(.*)$", re.MULTILINE)
OWN = re.compile(r"^SKIPPED ([^:\n]+): (.+)$", re.MULTILINE)
NO_REASON = "no reason was given"
EXAMPLES = 3
SLOWEST = 15


def skips_of(case):
    """(name, reason) of each skip that a <testcase> tells of."""
    name, output = case.get("name"), case.findtext("system-out") or ""
    found = [(name, reason.strip() or NO_REASON) for reason in GOOGLE_TEST.findall(output)]
    found += [(f"{name}: {part}", reason) for part, reason in OWN.findall(output)]
    if not found and (case.find("skipped") is not None or case.get("status") in ("notrun", "disabled")):
        found = [(name, NO_REASON)]
    return found


def listed(root):
    """The lines to print for a <testsuite>."""
    by_reason = collections.defaultdict(list)
    for case in root.iter("testcase"):
        for name, reason in skips_of(case):
            by_reason[reason].append(name)
    count = sum(map(len, by_reason.values()))
    lines = [f"{count} skipped" + (", because:" if count else "")]
    for reason, names in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        more = f" and {len(names) - EXAMPLES} more" if len(names) > EXAMPLES else ""
        lines.append(f"  {len(names):4}  {reason}  ({', '.join(names[:EXAMPLES])}{more})")
    return lines


def slowest(root):
    """The tests that took longest, and their share of all."""
    cases = sorted(((float(case.get("time", 0)), case.get("name")) for case in root.iter("testcase")), reverse=True)
    total = sum(seconds for seconds, _ in cases)
    part = sum(seconds for seconds, _ in cases[:SLOWEST])
    return [f"{total:.0f} s of tests; the slowest {len(cases[:SLOWEST])} took {part:.0f} s:",
            *(f"  {seconds:6.1f} s  {name}" for seconds, name in cases[:SLOWEST])]


def reproducers(root, folder):
    """How to run each test again that failed."""
    failed = [case.get("name") for case in root.iter("testcase") if case.find("failure") is not None or case.get("status") == "fail"]
    pattern = [f"^{re.escape(name)}$" for name in failed]
    return [f"again: build/env/bin/ctest --test-dir {folder} --output-on-failure -R {shlex.quote(one)}" for one in pattern]


def closing(root):
    """CTest's own closing line; tests that were skipped are none that failed."""
    total, failed = (int(root.get(key, 0)) for key in ("tests", "failures"))
    percent = (100 * (total - failed)) // total if total else 0
    return f"{percent}% tests passed, {failed} tests failed out of {total}"


def main():
    root = ElementTree.parse(sys.argv[1]).getroot()
    folder = os.path.relpath(os.path.dirname(os.path.abspath(sys.argv[1])))
    print("\n" + "\n".join([*slowest(root), "", *listed(root), "", *reproducers(root, folder), closing(root)]))


if __name__ == "__main__":
    main()
