"""Lists what a run of ctest skipped, from the results that it wrote as JUnit XML: how many, and each reason once.

    python tools/setup/skips.py build/release/tests.xml

A test counts that ctest calls skipped, with the reason that it printed; so does a part of a test that passed, which printed
a line "SKIPPED what: reason" (tests/checks.py), or a test inside a program (GoogleTest's "Skipped" with the reason below).
A skipped test without a reason is listed as such.
"""

import collections
import re
import sys
import xml.etree.ElementTree as ElementTree

GOOGLE_TEST = re.compile(r"^.+:\d+: Skipped\n(.*)$", re.MULTILINE)
OWN = re.compile(r"^SKIPPED ([^:\n]+): (.+)$", re.MULTILINE)
NO_REASON = "no reason was given"
EXAMPLES = 3


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


def closing(root):
    """CTest's own closing line; tests that were skipped are none that failed."""
    total, failed = (int(root.get(key, 0)) for key in ("tests", "failures"))
    percent = (100 * (total - failed)) // total if total else 0
    return f"{percent}% tests passed, {failed} tests failed out of {total}"


def main():
    root = ElementTree.parse(sys.argv[1]).getroot()
    print("\n" + "\n".join([*listed(root), closing(root)]))


if __name__ == "__main__":
    main()
