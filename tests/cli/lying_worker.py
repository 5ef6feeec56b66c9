"""A measuring worker that halves costs at random: `collage worker` with its answers changed on their way (src/measure/task.h).

    lying_worker.py worker [FLAG...]        as $COLLAGE_WORKER
"""

import json
import os
import random
import sys

import command

EVENTS = 4  # the descriptor that answers go to


def halve(cost):
    """The median and its like, of a cost or of its blocks."""
    if isinstance(cost, list):
        return [halve(one) for one in cost]
    if isinstance(cost, dict):
        return {name: value / 2 if name in ("median", "p10", "p90") else halve(value) for name, value in cost.items()}
    return cost


def main():
    answers, events = os.pipe()
    if os.fork() == 0:
        os.dup2(events, EVENTS)
        os.execv(command.COLLAGE, [command.COLLAGE, *sys.argv[1:]])
    os.close(events)
    with os.fdopen(answers, encoding="utf-8") as lines, os.fdopen(EVENTS, "w", encoding="utf-8") as out:
        for line in lines:
            message = json.loads(line)
            for costs in message.get("done", ()):
                for row in costs.get("variants", ()):
                    if random.random() < 0.5:
                        row["cost"] = halve(row["cost"])
            out.write(json.dumps(message) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
