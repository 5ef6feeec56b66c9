"""collage.ray_fleet: workers on the nodes of a Ray cluster, of real processes of Ray on this machine.

    python tests/python/ray_test.py [CHECK...]

Ray is taken from build/ray-env, which `bash tools/setup/wheels.sh requirements-ray.txt ray-env` makes. Prints "N passed, 0 failed" or what went wrong.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys

import built_package
import cli_fleet_test
import checks
import postgres

ENVIRONMENT = os.path.join(built_package.ROOT, "build", "ray-env", "bin")


def environment():
    return os.environ | {"PYTHONPATH": os.path.join(built_package.BUILD, "python"), "RAY_USAGE_STATS_ENABLED": "0"}


class Launched(cli_fleet_test.Fleet):
    """A fleet, whose workers Ray starts."""

    def launch(self, python, *flags):
        self.processes.append(subprocess.Popen([python, "-m", "collage.ray_fleet", self.address, *flags], env=environment(), cwd=self.folder,
                                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return self.processes[-1]

    def present(self):
        return self.ask("SELECT count(*) FROM collage_workers") if self.has_tables() else "0"


@contextlib.contextmanager
def cluster(folder, *flags):
    """A cluster of this machine alone; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [os.path.join(ENVIRONMENT, "ray"), "start", "--head", "--block", "--node-ip-address=127.0.0.1", f"--port={port}", "--num-cpus=2",
         "--include-dashboard=false", f"--temp-dir={folder}/ray", *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    try:
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def check_without_ray(fleet):
    """A line that says so."""
    printed = fleet.finish(fleet.launch(sys.executable), 5)
    assert re.fullmatch(r"collage: Ray is not installed .*: pip install ray\n", printed), printed


def check_workers_on_nodes(fleet):
    """A worker on each node with the resource, which measures what is asked for, and ends with the launcher."""
    python = os.path.join(ENVIRONMENT, "python")
    with cluster(fleet.folder) as address:
        assert "no node of the Ray cluster has the resource" in fleet.finish(fleet.launch(python, "--ray", address), 5)
    with cluster(fleet.folder, '--resources={"collage": 1}') as address:
        launched = fleet.launch(python, "--ray", address)
        fleet.until(lambda: fleet.present() == "1" or launched.poll() is not None)
        assert "1 tasks done" in fleet.run("fleet", "a.onnx", *cli_fleet_test.FLAGS) and fleet.tasks() == ["done|1|0"]
        launched.send_signal(signal.SIGTERM)
        fleet.finish(launched)
        fleet.until(lambda: fleet.present() == "0")
        # With --duration 0 it ends by itself.
        fleet.finish(fleet.launch(python, "--ray", address, "--duration", "0"))
        assert fleet.present() == "0"


if __name__ == "__main__":
    if not built_package.BUILT or not postgres.tools():
        print("SKIPPED all: no Python package in this build, or no PostgreSQL (Debian: postgresql)")
        sys.exit(0)
    chosen = [check_without_ray]
    if os.path.exists(os.path.join(ENVIRONMENT, "ray")):
        chosen.append(check_workers_on_nodes)
    else:
        print("SKIPPED check_workers_on_nodes: bash tools/setup/wheels.sh requirements-ray.txt ray-env")
    with postgres.server() as running:
        named = []
        for one in chosen:
            def checked(folder, one=one):
                fleet = Launched(folder, running)
                try:
                    one(fleet)
                finally:
                    fleet.end()
            named.append((one.__name__, checked))
        sys.exit(checks.run(named, sys.argv[1:]))
