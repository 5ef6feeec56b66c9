"""How the wall time of a fleet falls with its nodes, and where its database limits, by simulation.

    python bench/fleet_simulation.py [--queue FILE.json] [--tasks 10000] [--nodes 1,2,…,256] [--seconds 60] [--plot FILE.svg]

Tasks take made-up times (log-normal, of a given mean); what the queue costs is measured: by build/release/bench/queue_bench on a PostgreSQL server that
this script starts, with its log on disk, or given as that program's JSON. The server does one call after the other.

Of all attempts, 5% fail at a random moment: half of them crash, and half take the node along, which falls silent and is back after a minute. What was
measured until then counts. One node in twenty is half as fast. One in 64 begins to halve costs at a random moment, and its next calibration shows it: it
ends, its tasks are done again, and all others are looked at again, which takes two seconds each.

Efficiency is the tasks' time over the time of all nodes, slow ones counted as half, until the last task has ended.
"""

import argparse
import heapq
import json
import math
import os
import random
import subprocess
import sys
from collections import deque

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))

FAILING, SLOW, LYING = 0.05, 1 / 20, 1 / 64
LEASE, RENEWED, CALIBRATED, RESTART, POLL = 60, 10, 600, 60, 1  # seconds, as tools/collage/worker.cc has them
LOOK = 2  # seconds that a task takes of which everything is known
DEATHS = 3


class Task:
    def __init__(self, seconds):
        self.seconds = self.left = seconds
        self.deaths, self.owner = 0, None


class Node:
    def __init__(self, speed):
        self.speed, self.lies_from, self.gone = speed, math.inf, False
        self.task, self.since, self.turn = None, 0, 0  # a turn is one attempt


class Fleet:
    """Events by time; `costs` are the server's seconds for "take", "renew" and "end"."""

    def __init__(self, tasks, nodes, costs, seconds, seed=0, failing=FAILING, slow=SLOW, lying=LYING):
        self.random, self.costs, self.failing = random.Random(seed), costs, failing
        sigma = 0.7
        sizes = [self.random.lognormvariate(math.log(seconds) - sigma * sigma / 2, sigma) for _ in range(tasks)]
        self.waiting, self.done, self.work = deque(Task(size) for size in sizes), [], sum(sizes)
        self.open, self.quarantined, self.events, self.order = tasks, 0, [], 0
        self.now = self.busy_until = self.busy = 0
        self.nodes = [Node(0.5 if n % round(1 / slow) == 1 else 1) if slow else Node(1) for n in range(nodes)]
        for node in self.random.sample(self.nodes, round(nodes * lying)):
            node.lies_from = self.random.uniform(0, self.work / nodes)
        for node in self.nodes:
            self.at(self.random.uniform(0, POLL), self.look, node)
            if node.lies_from < math.inf:
                shown = self.random.uniform(0, CALIBRATED)
                self.at(shown + math.ceil(max(0, node.lies_from - shown) / CALIBRATED) * CALIBRATED, self.show_liar, node)

    def at(self, when, what, *arguments):
        self.order += 1
        heapq.heappush(self.events, (when, self.order, what, arguments))

    def asked(self, call):
        """When the server has answered."""
        self.busy_until = max(self.now, self.busy_until) + self.costs[call]
        self.busy += self.costs[call]
        return self.busy_until

    def run(self):
        while self.open:
            self.now, _, what, arguments = heapq.heappop(self.events)
            what(*arguments)
        return self

    def look(self, node):
        if node.gone or node.task:
            return
        begin = self.asked("take")
        if not self.waiting:
            return self.at(begin + POLL, self.look, node)
        task = node.task = self.waiting.popleft()
        node.turn, node.since, task.owner = node.turn + 1, begin, node
        seconds = task.left / node.speed
        if self.random.random() >= self.failing:
            self.at(begin + seconds, self.end, node, node.turn)
        else:
            failure = self.crash if self.random.random() < 0.5 else self.fall_silent
            self.at(begin + seconds * self.random.random(), failure, node, node.turn)
        self.at(begin + RENEWED, self.renew, node, node.turn)

    def renew(self, node, turn):
        if node.turn == turn and node.task:
            self.asked("renew")
            self.at(self.now + RENEWED, self.renew, node, turn)

    def end(self, node, turn):
        if node.turn == turn and node.task:
            self.done.append(node.task)
            node.task, self.open = None, self.open - 1
            self.at(self.asked("end"), self.look, node)

    def lay_down(self, node):
        """What was measured stays."""
        task, node.task = node.task, None
        task.left = max(0, task.left - (self.now - node.since) * node.speed) + LOOK
        return task

    def died(self, task):
        task.deaths += 1
        if task.deaths < DEATHS:
            self.waiting.append(task)
        else:
            self.quarantined, self.open = self.quarantined + 1, self.open - 1

    def crash(self, node, turn):
        if node.turn == turn and node.task:
            self.died(self.lay_down(node))
            self.at(self.asked("end"), self.look, node)

    def fall_silent(self, node, turn):
        if node.turn == turn and node.task:
            renewed = node.since + (self.now - node.since) // RENEWED * RENEWED
            self.at(renewed + LEASE, self.died, self.lay_down(node))
            self.at(self.now + RESTART, self.look, node)

    def show_liar(self, liar):
        liar.gone = True
        again = []
        for task in self.done:
            lied = task.owner is liar and self.now > liar.lies_from
            task.left = task.seconds if lied else LOOK
            again.append(task)
        self.open, self.done = self.open + len(again), []
        for node in self.nodes:
            if node.task:
                again.append(self.lay_down(node))
                self.at(self.now, self.look, node)
        self.waiting.extend(again)

    def efficiency(self):
        return self.work / (sum(node.speed for node in self.nodes) * self.now)


def server_costs(report):
    """Seconds of the server for each call, by the most calls a second that it answered."""
    rate = lambda name: max(run["items_per_second"] for run in report["benchmarks"] if run["name"].startswith(name + "/"))
    pair = 1 / rate("take_and_end")
    return {"take": 0.75 * pair, "end": 0.25 * pair, "renew": 1 / rate("renew")}  # of four statements take has three


def measured_costs():
    import postgres

    with postgres.server() as server:
        server.crash()
        server.start("fsync=on", "max_connections=200")
        printed = subprocess.run([os.path.join(ROOT, "build", "release", "bench", "queue_bench"), "--benchmark_format=json"], check=True,
                                 env=os.environ | {"COLLAGE_QUEUE": server.address()}, stdout=subprocess.PIPE, text=True).stdout
    return server_costs(json.loads(printed))


def chart(rows, most):
    """Efficiency and the server's load by nodes, as SVG; `most`: nodes at which the server has no time left."""
    left, top, width, height = 50, 40, 520, 220
    x = lambda nodes: left + width * math.log2(nodes) / max(1, math.log2(rows[-1][0]))
    y = lambda share: top + height * (1 - share)
    words = lambda at, down, text, more="": f'<text x="{at:.0f}" y="{down:.0f}" {more}>{text}</text>'
    lines = [words(left, 20, f"A fleet's efficiency, and its server's load (full at {most:.0f} nodes)", 'font-weight="bold"')]
    for tenth in range(0, 11, 2):
        lines.append(f'<line x1="{left}" x2="{left + width}" y1="{y(tenth / 10):.0f}" y2="{y(tenth / 10):.0f}" stroke="#ddd"/>')
        lines.append(words(left - 8, y(tenth / 10) + 4, f"{tenth * 10}%", 'text-anchor="end"'))
    for colour, name, column in (("#2f6fb3", "efficiency", 2), ("#e08a2c", "server", 3)):
        points = " ".join(f"{x(row[0]):.1f},{y(row[column]):.1f}" for row in rows)
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines.append(words(left + width + 8, y(rows[-1][column]) + 4, name, f'fill="{colour}"'))
    for row in rows:
        lines.append(words(x(row[0]), top + height + 18, row[0], 'text-anchor="middle"'))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{top + height + 30}" font-family="sans-serif" font-size="11">\n'
            '<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(lines) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--queue", help="what queue_bench printed")
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--nodes", default="1,2,4,8,16,32,64,128,256")
    parser.add_argument("--seconds", type=float, default=60, help="the mean time of a task")
    parser.add_argument("--plot")
    options = parser.parse_args()
    if options.queue:
        with open(options.queue, encoding="utf-8") as file:
            costs = server_costs(json.load(file))
    else:
        costs = measured_costs()
    print(", ".join(f"{call} {seconds * 1e3:.2f} ms" for call, seconds in costs.items()) + " of the server")
    print("| nodes | hours | efficiency | server busy | in quarantine |\n| --- | --- | --- | --- | --- |")
    rows = []
    for nodes in map(int, options.nodes.split(",")):
        fleet = Fleet(options.tasks, nodes, costs, options.seconds).run()
        rows.append((nodes, fleet.now, fleet.efficiency(), fleet.busy / fleet.now))
        print(f"| {nodes} | {fleet.now / 3600:.2f} | {fleet.efficiency():.1%} | {fleet.busy / fleet.now:.2%} | {fleet.quarantined} |", flush=True)
    if options.plot:
        with open(options.plot, "w", encoding="utf-8") as file:
            file.write(chart(rows, rows[-1][0] / rows[-1][3]))


if __name__ == "__main__":
    main()
