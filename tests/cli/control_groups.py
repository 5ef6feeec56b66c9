"""Control groups that limit what runs in them, made for a test where the machine lets one make them."""

import contextlib
import os

MEMORY = 2 << 30
# By controller: the file that limits a group and what it says here, of version 1 and of version 2.
LIMITS = {"cpu": (("cpu.cfs_quota_us", "100000"), ("cpu.max", "100000 100000")),
          "memory": (("memory.limit_in_bytes", str(MEMORY)), ("memory.max", str(MEMORY)))}


def own_group(controller, shown):
    """The process's group of version 1, below the one that the mount shows as its root."""
    with open("/proc/self/cgroup") as file:
        for _, names, group in (line.rstrip("\n").split(":", 2) for line in file):
            if controller in names.split(","):
                return os.path.relpath(group, shown)
    return "."


def hierarchy(controller):
    """The folder to make groups in, the file that limits a group and what it says."""
    with open("/proc/self/mountinfo") as file:
        for line in file:
            fields, kind = line.split(), line.split(" - ")[1].split()
            if kind[0] == "cgroup" and controller in kind[2].split(","):
                return os.path.join(fields[4], own_group(controller, fields[3])), *LIMITS[controller][0]
    return "/sys/fs/cgroup", *LIMITS[controller][1]


@contextlib.contextmanager
def limited(controller):
    """What a process calls to enter a group inside one that has one core, or MEMORY bytes; None where no group may be made."""
    folder, name, limit = hierarchy(controller)
    outer = os.path.join(folder, f"collage-test-{os.getpid()}")
    inner = os.path.join(outer, "inner")

    def enter():
        with open(os.path.join(inner, "cgroup.procs"), "w") as file:
            file.write(str(os.getpid()))

    try:
        try:
            for group in (outer, inner):
                os.mkdir(group)
            with open(os.path.join(outer, name), "w") as file:
                file.write(limit)
        except OSError:
            print(f"SKIPPED limits of {controller}: no control group may be made here")
            yield None
            return
        yield enter
    finally:
        for group in (inner, outer):
            if os.path.isdir(group):
                os.rmdir(group)
