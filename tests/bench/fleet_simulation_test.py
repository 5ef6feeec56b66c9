"""The simulation of a fleet (bench/fleet_simulation.py): every task ends, whatever fails, and what is lost is what the failures cost.

    python tests/bench/fleet_simulation_test.py [CHECK...]
"""

import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "tests")]

import checks
import fleet_simulation

FREE = {"take": 0, "renew": 0, "end": 0}


def run(tasks, nodes, costs=FREE, seed=0, **shares):
    return fleet_simulation.Fleet(tasks, nodes, costs, 60, seed, **({"failing": 0, "slow": 0, "lying": 0} | shares)).run()


def check_nothing_fails(_):
    """One node takes as long as its tasks; more share them."""
    alone, eight = run(200, 1), run(200, 8)
    assert 0.99 < alone.efficiency() <= 1 and 0.85 < eight.efficiency() <= 1, (alone.efficiency(), eight.efficiency())
    assert len(alone.done) == len(eight.done) == 200


def check_failures(_):
    """Tasks end once each, or in quarantine; slow and lying nodes and failures cost time."""
    for seed in range(5):
        fleet = run(500, 64, seed=seed, failing=0.3, slow=0.05, lying=1 / 16)
        assert len(fleet.done) + fleet.quarantined == 500 and len(set(fleet.done)) == len(fleet.done)
        assert fleet.efficiency() < run(500, 64, seed=seed).efficiency()
    assert run(500, 8, failing=0.6).quarantined > 10 and run(500, 8, failing=1).quarantined == 500


def check_liar(_):
    """When a liar is found, nothing that it ended counts any more."""
    fleet = run(400, 16, lying=1 / 16)
    liar, = (node for node in fleet.nodes if node.lies_from < float("inf"))
    assert liar.gone and len(fleet.done) == 400 and all(task.owner is not liar for task in fleet.done)


def check_server(_):
    """A server that needs a second a call is what limits."""
    slow = run(300, 64, {"take": 1, "renew": 0, "end": 1})
    assert slow.now > 600 and slow.busy / slow.now > 0.9, (slow.now, slow.busy)
    picture = fleet_simulation.chart([(1, 10, 1, 0.1), (64, 2, 0.9, 0.7)], 91)
    assert picture.startswith("<svg") and picture.count("<polyline") == 2 and "full at 91 nodes" in picture


def check_costs(_):
    """Of what queue_bench prints, the best rates count."""
    runs = [("take_and_end/real_time/threads:1", 100), ("take_and_end/real_time/threads:16", 400), ("renew/real_time/threads:16", 1000)]
    costs = fleet_simulation.server_costs({"benchmarks": [{"name": name, "items_per_second": rate} for name, rate in runs]})
    assert abs(costs["take"] + costs["end"] - 1 / 400) < 1e-9 and costs["renew"] == 1e-3, costs


if __name__ == "__main__":
    sys.exit(checks.run([check_nothing_fails, check_failures, check_liar, check_server, check_costs], sys.argv[1:]))
