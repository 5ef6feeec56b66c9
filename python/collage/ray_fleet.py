"""Workers of a fleet (docs/fleet.md) on the nodes of a Ray cluster.

    ray start --address=HEAD:6379 --resources='{"collage": 1}'      # each node that is to measure
    python -m collage.ray_fleet postgresql://ann@costs/costs [--ray ADDRESS] [FLAG of `collage worker`...]

    with collage.ray_fleet.launch("postgresql://ann@costs/costs", ray="ray://head:10001") as workers:
        subprocess.run(["collage", "fleet", ...])

A worker takes the resource and all processors of its node, so Ray runs nothing beside it. Ray is loaded by `launch` alone; the package must be
installed on the nodes.
"""

from __future__ import annotations

import argparse
import ctypes
import signal
import subprocess
import sys
import time
from typing import Any, Optional, Sequence

from ._error import Error, ErrorCode

RESOURCE = "collage"
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)


class _Node:
    """Of one node, in a process there: the worker."""

    def __init__(self, flags: list[str]) -> None:
        # pylint: disable=subprocess-popen-preexec-fn,consider-using-with
        self._process = subprocess.Popen([sys.executable, "-m", "collage", "worker", *flags], stdin=subprocess.DEVNULL, preexec_fn=_end_with_parent)

    def status(self) -> Optional[int]:
        return self._process.poll()

    def stop(self) -> int:
        self._process.terminate()
        return self._process.wait()


class Workers:
    """Those that `launch` started; leaving the `with` block stops them."""

    def __init__(self, ray: Any, nodes: list[Any]) -> None:
        self._ray, self._nodes = ray, nodes

    def statuses(self) -> list[Optional[int]]:
        """Exit statuses, in no order; None of one that runs."""
        return self._ray.get([node.status.remote() for node in self._nodes])

    def wait(self) -> list[int]:
        """Until all have ended, which those with --duration do by themselves."""
        while None in (statuses := self.statuses()):
            time.sleep(1)
        return statuses

    def stop(self) -> None:
        """Each gives its task back."""
        self._ray.get([node.stop.remote() for node in self._nodes])
        for node in self._nodes:
            self._ray.kill(node)
        self._nodes = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def launch(database: str, flags: Sequence[str] = (), ray: Optional[str] = None) -> Workers:
    """Starts a worker on every node that has the resource. `ray`: the cluster, as `ray.init` takes it; None: that of this process, or of this machine."""
    try:
        import ray as engine
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
    except ImportError as missing:
        raise Error(ErrorCode.UNAVAILABLE, f"Ray is not installed ({missing}): pip install ray") from None
    if not engine.is_initialized():
        engine.init(address=ray or "auto", log_to_driver=True)
    found = [node for node in engine.nodes() if node["Alive"] and node["Resources"].get(RESOURCE, 0) >= 1]
    if not found:
        raise Error(ErrorCode.UNAVAILABLE, f"no node of the Ray cluster has the resource: ray start --resources='{{\"{RESOURCE}\": 1}}'")
    actor = engine.remote(_Node)
    started = [actor.options(num_cpus=node["Resources"].get("CPU", 0), resources={RESOURCE: 1},
                             scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)).remote(["--db", database, *flags])
               for node in found]
    return Workers(engine, started)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m collage.ray_fleet", description="Starts `collage worker` on the nodes of a Ray cluster.")
    parser.add_argument("database", help="postgresql://...")
    parser.add_argument("--ray", help="the cluster's address, as ray.init takes it")
    options, flags = parser.parse_known_args()
    try:
        with launch(options.database, flags, options.ray) as workers:
            for number in (signal.SIGTERM, signal.SIGINT):  # Ray has handlers of its own
                signal.signal(number, lambda *_: sys.exit(0))
            return max(workers.wait())
    except Error as wrong:
        print(f"collage: {wrong}", file=sys.stderr)
        return int(wrong.code)


if __name__ == "__main__":
    sys.exit(main())
