"""A measuring worker whose costs are others than it measured: `collage worker` with its answers changed on their way (src/measure/task.h).

    other_costs.py steady|lying worker [FLAG...]        the rest as $COLLAGE_WORKER is called

steady: a cost follows from the kernel alone, so that machines agree, whatever disturbs them. lying: so too, but half of them, at
random, are halved.
"""

import json
import os
import random
import sys
import zlib

import command

EVENTS = 4  # the descriptor that answers go to


def changed(cost, to):
    """The median and its like, of a cost or of its blocks."""
    if isinstance(cost, list):
        return [changed(one, to) for one in cost]
    if isinstance(cost, dict):
        return {name: to if name in ("median", "p10", "p90") else changed(value, to) for name, value in cost.items()}
    return cost


def steady(target, variant):
    """10 us to 4 ms by a hash of what was measured, so that few are about equal; seconds."""
    return 1e-5 * 1.1 ** (zlib.crc32(json.dumps([target, variant], sort_keys=True).encode()) % 64)


def main():
    lies = sys.argv[1] == "lying"
    answers, events = os.pipe()
    if os.fork() == 0:
        os.dup2(events, EVENTS)
        os.execv(command.COLLAGE, [command.COLLAGE, *sys.argv[2:]])
    os.close(events)
    with os.fdopen(answers, encoding="utf-8") as lines, os.fdopen(EVENTS, "w", encoding="utf-8") as out:
        for line in lines:
            message = json.loads(line)
            for costs in message.get("done", ()):
                costs.get("conditions", {}).pop("disturbed", None)
                for row in costs.get("variants", ()):
                    row["cost"] = changed(row["cost"], steady(costs.get("target"), row["variant"]) / (2 if lies and random.random() < 0.5 else 1))
            out.write(json.dumps(message) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
