"""Checks that every include respects the layers: a room may include itself and what it depends on by CMakeLists.txt, and that the
table of docs/architecture.md has the rooms in that order.

Kernels, src/backend/<name>/kernels/, are a room below all others of src/backend/. A backend's folder may include itself, what lies
flat in src/backend/ and its own kernels, never another backend, and what it and its kernels share with others by SHARED;
src/backend/targets/, the list of backends, may include each. The public headers include only one another and the standard library. The test first plants
violations in a scratch tree and fails if the check does not see them.
"""

import os
import re
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read_rooms(cmake):
    """{room: rooms that it may include} of the text of CMakeLists.txt, top to bottom. Kernels and backends, which CMake finds by
    looking, stand where their lists are included; a backend may include kernels."""
    rooms = {}
    for name, rest in re.findall(r"^(?:collage_room|include)\(([\w/]+)([^)]*)\)", cmake, re.MULTILINE):
        depends = re.search(r"DEPENDS ((?:(?!LIBS)\w+ ?)+)", rest.replace("\n", " "))
        direct = {re.sub(r"^(backend|dynamic)(s?|_\w+)$", r"\1", re.sub(r"^backend_\w+_kernels$", "kernels", one))
                  .replace("frontend_", "frontend/") for one in (depends[1].split() if depends else [])}
        if name == "kernels":
            direct = {"tensor_program"}
        elif name == "backend":
            direct.add("kernels")
        elif rest == "" and name != "base":
            continue  # another list of CMake's
        room = re.sub("/(host|targets)$", "", name)
        above = set().union(direct - {room}, *(rooms[one] for one in direct - {room}))
        rooms[room] = rooms.get(room, set()) | above
    return rooms


with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
    ROOMS = read_rooms(file.read())
# Folders that hold what several backends share: who may include each, beside those of its own name. Most are no backends;
# native is one, whose compiler makes the kernels of opencl too.
SHARED = {
    "backend/contraction": {"backend/amx"},
    "backend/contraction/kernels": {"backend/amx/kernels", "backend/amx"},
    "backend/gemm": {"backend/blas", "backend/opencl"},
    "backend/gemm/kernels": {"backend/blas/kernels", "backend/opencl/kernels", "backend/blas", "backend/opencl", "backend/gemm"},
    "backend/native": {"backend/opencl"},
    "backend/native/kernels": {"backend/opencl/kernels", "backend/opencl"},
}
# The list of backends.
LIST = "backend/targets"
PUBLIC = "public headers"
TOOLS = "tools"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
# The one generated public header (cmake/version.h.in).
GENERATED = {"collage/version.h"}
# What a public header in C may include.
STANDARD_C = {"stddef.h", "stdint.h"}


def room_of(path):
    """The room that a path relative to src/ belongs to: one of ROOMS, backend/<name> or backend/<name>/kernels; None if it has none."""
    parts = path.split("/")
    if parts[0] == "backend" and len(parts) > 2:
        return "/".join(parts[:3 if parts[2] == "kernels" and len(parts) > 3 else 2])
    for room in ROOMS:
        if path.startswith(room + "/"):
            return room
    return None


def whole(room):
    """The room of CMakeLists.txt that a backend's folder, or that of its kernels, is a part of."""
    if not room.startswith("backend/"):
        return room
    return "kernels" if room.endswith("/kernels") else "backend"


def forbidden(source, target):
    """Why a file of room `source` may not include one of room `target`; None if it may."""
    if target == PUBLIC or source in (target, TOOLS):
        return None
    if source == PUBLIC:
        return "a public header may not include a header of src/"
    if whole(target) != whole(source) and whole(target) not in ROOMS[whole(source)]:
        return f"{source} does not depend on {target}"
    if source == LIST or target == "backend" or whole(target) not in ("kernels", "backend") or whole(source) not in ("kernels", "backend"):
        return None
    if target == f"{source}/kernels" or source in SHARED.get(target, ()):
        return None
    return f"{source} may not know {target}"


def sources(root, folder):
    for at, _, names in sorted(os.walk(os.path.join(root, folder))):
        for name in sorted(names):
            if name.endswith((".h", ".cc", ".inc")):
                yield os.path.relpath(os.path.join(at, name), root)


def check(root):
    """Every violation under root, as 'file:line: why', and the number of includes looked at."""
    problems, seen = [], 0
    for folder in ("include", "src", "tools"):
        for path in sources(root, folder):
            inside = path.split("/", 1)[1]
            room = {"include": PUBLIC, "tools": TOOLS}.get(folder) or room_of(inside)
            if room is None:
                problems.append(f"{path}:1: {inside.split('/')[0]} is no room of the design")
                continue
            with open(os.path.join(root, path), encoding="utf-8") as file:
                text = file.read()
            for match in INCLUDE.finditer(text):
                seen += 1
                quoted, name = match[1] == '"', match[2]
                where = f"{path}:{text.count(chr(10), 0, match.start(2)) + 1}"
                if ".." in name.split("/"):
                    problems.append(f'{where}: "{name}" must be named from src/')
                elif os.path.isfile(os.path.join(root, "include", name)) or name in GENERATED:
                    pass
                elif os.path.isfile(os.path.join(root, "src", name)):
                    target = room_of(name)
                    why = forbidden(room, target) if target else f"{name} is in no room"
                    if why:
                        problems.append(f'{where}: includes "{name}": {why}')
                elif room == PUBLIC and ("/" in name or name.endswith(".h")) and name not in STANDARD_C:
                    problems.append(f"{where}: a public header may not need {name}")
                elif quoted and not (folder == "tools" and os.path.isfile(os.path.join(root, os.path.dirname(path), name))):
                    problems.append(f'{where}: "{name}" is not found from src/ or include/')
    return problems, seen


# (file, what it includes, is that forbidden). Every included file exists in the scratch tree.
PLANTED = [
    ("src/base/a.h", '"runtime/b.h"', True),
    ("src/runtime/c.cc", '"base/a.h"', False),
    ("src/runtime/d.cc", "<ir/e.h>", True),
    ("src/ir/e.h", '"ir/nested/f.h"', False),
    ("src/partition/g.cc", '"frontend/onnx/h.h"', True),
    ("src/passes/i.cc", '"frontend/onnx/h.h"', True),
    ("src/compiler/i.cc", '"frontend/onnx/h.h"', False),
    ("src/search/i.cc", '"cost/q.h"', True),
    ("src/backend/j.h", '"backend/native/k.h"', True),
    ("src/backend/native/l.cc", '"backend/native/k.h"', False),
    ("src/backend/native/m.cc", '"backend/j.h"', False),
    ("src/backend/native/n.cc", '"backend/onednn/o.h"', True),
    ("src/backend/onednn/p.cc", '"cost/q.h"', True),
    ("src/backend/amx/shares.cc", '"backend/contraction/block.h"', False),
    ("src/backend/native/shares.cc", '"backend/contraction/block.h"', True),
    ("src/backend/contraction/knows_amx.cc", '"backend/amx/tiles.h"', True),
    ("src/backend/contraction/itself.cc", '"backend/contraction/block.h"', False),
    ("src/backend/onednn/dd.cc", '"backend/onednn/kernels/ee.h"', False),
    ("src/backend/onednn/ff.cc", '"backend/native/kernels/gg.h"', True),
    ("src/backend/opencl/pp.cc", '"backend/native/k.h"', False),
    ("src/backend/opencl/qq.cc", '"backend/native/kernels/gg.h"', False),
    ("src/backend/opencl/kernels/rr.cc", '"backend/native/kernels/gg.h"', False),
    ("src/backend/opencl/kernels/ss.cc", '"backend/native/k.h"', True),
    ("src/backend/native/tt.cc", '"backend/opencl/kernels/uu.h"', True),
    ("src/backend/onednn/kernels/hh.cc", '"backend/native/kernels/gg.h"', True),
    ("src/backend/amx/kernels/jj.cc", '"backend/contraction/kernels/tile.h"', False),
    ("src/backend/contraction/kernels/kk.cc", '"backend/amx/kernels/tiles.h"', True),
    ("src/backend/amx/ll.cc", '"backend/contraction/kernels/tile.h"', False),
    ("src/backend/contraction/mm.cc", '"backend/contraction/kernels/tile.h"', False),
    ("src/backend/contraction/nn.cc", '"backend/amx/kernels/tiles.h"', True),
    ("src/backend/native/oo.cc", '"backend/contraction/kernels/tile.h"', True),
    ("src/backend/onednn/kernels/ii.cc", '"backend/j.h"', True),
    ("src/backend/targets/all.cc", '"backend/native/k.h"', False),
    ("src/backend/targets/above.cc", '"cost/q.h"', True),
    ("src/backend/native/knows_all.cc", '"backend/targets/list.h"', True),
    ("src/backend/onednn/kernels/up.cc", '"backend/onednn/o.h"', True),
    ("src/artifact/kernels.cc", '"backend/native/kernels/gg.h"', False),
    ("src/artifact/backend.cc", '"backend/native/k.h"', True),
    ("src/cost/r.cc", '"backend/native/k.h"', False),
    ("src/cost/s.cc", '"../base/a.h"', True),
    ("src/cost/t.cc", '"nowhere/u.h"', True),
    ("src/ir/u.cc", '"backend/../backend/j.h"', True),
    ("src/base/v.cc", '"collage/w.h"', False),
    ("src/stray/x.cc", "<vector>", True),
    ("include/collage/w.h", "<vector>", False),
    ("include/collage/y.h", '"base/a.h"', True),
    ("include/collage/z.h", "<Halide.h>", True),
    ("tools/collage/main.cc", '"report/aa.h"', False),
    ("tools/collage/bb.cc", '"cc.h"', True),
]
LEAVES = ["runtime/b.h", "backend/targets/list.h", "ir/nested/f.h", "frontend/onnx/h.h", "backend/native/k.h", "backend/onednn/o.h", "backend/contraction/block.h",
          "backend/amx/tiles.h", "cost/q.h", "report/aa.h", "backend/onednn/kernels/ee.h",
          "backend/native/kernels/gg.h", "backend/opencl/kernels/uu.h", "backend/contraction/kernels/tile.h", "backend/amx/kernels/tiles.h"]


def self_test():
    """Plants good and bad includes and returns those that check() judges wrongly."""
    with tempfile.TemporaryDirectory() as root:
        for leaf in LEAVES:
            path = os.path.join(root, "src", leaf)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "w", encoding="utf-8").close()
        for path, name, _ in PLANTED:
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(f"// planted\n#include {name}\n")
        found = {problem.split(":")[0] for problem in check(root)[0]}
    return [
        f"self-test: {path} includes {name}: {'not seen' if bad else 'wrongly refused'}"
        for path, name, bad in PLANTED
        if bad != (path in found)
    ]


def documented(page):
    """The rooms of docs/architecture.md's table."""
    rows = re.findall(r"^\| `src/([\w/]+?|backend/NAME/kernels)/` \|", page, re.MULTILINE)
    return [room.replace("backend/NAME/", "") for room in rows]


def main():
    wrong = self_test()
    problems, seen = check(ROOT)
    with open(os.path.join(ROOT, "docs", "architecture.md"), encoding="utf-8") as file:
        if documented(file.read()) != list(ROOMS):
            problems.append("docs/architecture.md: its table of rooms is not CMakeLists.txt's list")
    for line in wrong + problems:
        print(line)
    print(f"layers: {seen} includes, {len(problems)} forbidden; {len(PLANTED)} planted, {len(wrong)} misjudged")
    return 1 if wrong or problems else 0


if __name__ == "__main__":
    sys.exit(main())
