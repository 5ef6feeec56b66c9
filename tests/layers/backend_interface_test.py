"""Backends are told apart by what they state: at most six virtual functions, and no look into the names of their variants.

    python tests/layers/backend_interface_test.py
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]

import checks

ROOT = os.path.join(HERE, "..", "..")
MOST_VIRTUALS = 6
# What reads something from a variant's name, where a comparison of two whole names does not.
LOOK_UP = re.compile(r'\b(?:variant|used)\.name\.(?:find|rfind|substr|starts_with|ends_with|at|front|back)\b'
                     r'|\b(?:variant|used)\.name\s*[!=]=\s*"|parse\w*\(\w*\.?variant\.name')


def sources(folder):
    for path, _, files in os.walk(os.path.join(ROOT, folder)):
        for file in sorted(files):
            if file.endswith((".cc", ".h")):
                with open(os.path.join(path, file), encoding="utf-8") as text:
                    yield os.path.relpath(os.path.join(path, file), ROOT), text.read()


def virtuals(text):
    """Virtual functions of the class Backend, the destructor aside."""
    body = re.search(r"^class Backend \{$(.*?)^\};$", text, re.MULTILINE | re.DOTALL).group(1)
    return re.findall(r"\bvirtual (?!~)[^;{]*?(\w+)\(", body)


def look_ups(text):
    return LOOK_UP.findall(text)


def check_virtual_functions(_):
    text = dict(sources("src/backend"))[os.path.join("src", "backend", "backend.h")]
    found = virtuals(text)
    assert "compile" in found and len(found) <= MOST_VIRTUALS, found


def check_names_of_variants(_):
    """No code outside the backends reads a variant's name: they state Rounding and Work."""
    inside = os.path.join("src", "backend", "")
    found = [path for folder in ("src", "tools") for path, text in sources(folder)
             if not path.startswith(inside) and look_ups(text)]
    assert not found, found


def check_what_is_looked_for(_):
    for line in ('variant.name.find("winograd")', 'row.variant.name.starts_with(kStages)', 'if (variant.name == "in place")',
                 "parse_stage_schedule(variant.name)"):
        assert look_ups(line), line
    for line in ("proposed_.find(variant.name)", "names.push_back(variant.name)", "a.variant.name == b.variant.name"):
        assert not look_ups(line), line
    assert virtuals("class Backend {\n virtual ~Backend() = default;\n virtual Status available() const;\n};\n") == ["available"]


if __name__ == "__main__":
    sys.exit(checks.run([check_virtual_functions, check_names_of_variants, check_what_is_looked_for], sys.argv[1:]))
