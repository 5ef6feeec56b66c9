"""A fleet of three hosts, each a network namespace, and a server in a fourth, joined by a bridge: workers, the driver and the server are killed
and the network is cut at random moments. Nothing acknowledged is lost, and the plans are those of one machine.

    python tests/cli/long_fleet_hosts_test.py [ROUNDS [SEED]]

A round is one kill of each kind and one cut. Needs root, and `ip` (Debian: iproute2).
"""

import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import onnx
from onnx import helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import cli_fleet_test
import postgres
import tiny_models

MODELS, HOSTS = 10, 3
OPS = ("Tanh", "Sigmoid")


def large_functions(number):
    """A model of unconnected operators, each so large that oneDNN is much faster than the reference: there is one best plan."""
    nodes, inputs, outputs = [], {}, {}
    for i in range(20):
        nodes.append(helper.make_node(OPS[i % len(OPS)], [f"x{i}"], [f"y{i}"], f"node{i}"))
        inputs[f"x{i}"] = outputs[f"y{i}"] = [256, 128 + 20 * number + i]
    return tiny_models.model(nodes, inputs, outputs)


def ip(*words, check=True):
    subprocess.run(["ip", *words], check=check, stderr=subprocess.DEVNULL)


class Network:
    """Namespaces NAME0 with a bridge, and NAME1 to NAME3 on it."""

    def __init__(self):
        self.name = f"collage{os.getpid()}h"

    def __enter__(self):
        ip("netns", "add", self.name + "0")
        self.inside(0, "link", "add", "bridge", "type", "bridge")
        self.inside(0, "addr", "add", self.address(0) + "/24", "dev", "bridge")
        self.inside(0, "link", "set", "bridge", "up")
        self.inside(0, "link", "set", "lo", "up")
        for host in range(1, HOSTS + 1):
            ip("netns", "add", self.name + str(host))
            self.inside(host, "link", "add", "wire", "type", "veth", "peer", "name", f"wire{host}", "netns", self.name + "0")
            self.inside(0, "link", "set", f"wire{host}", "master", "bridge", "up")
            self.inside(host, "addr", "add", self.address(host) + "/24", "dev", "wire")
            self.inside(host, "link", "set", "wire", "up")
            self.inside(host, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for host in range(HOSTS + 1):
            ip("netns", "delete", self.name + str(host), check=False)

    @staticmethod
    def address(host):
        return f"10.77.0.{host + 1}"

    def inside(self, host, *words):
        ip("-n", self.name + str(host), *words)

    def on(self, host):
        """What a command begins with that runs there."""
        return ["ip", "netns", "exec", self.name + str(host)]

    def cut(self, host, seconds):
        self.inside(0, "link", "set", f"wire{host}", "down")
        time.sleep(seconds)
        self.inside(0, "link", "set", f"wire{host}", "up")


class Server(postgres.Server):
    """One that answers in namespace 0, to all."""

    def __init__(self, folder, network):
        super().__init__(folder)
        self.network = network
        with open(os.path.join(folder, "data", "pg_hba.conf"), "a", encoding="utf-8") as file:
            file.write("host all all 10.77.0.0/24 trust\n")

    def start(self, *settings, before=None):
        nobody = f"--reuid={postgres.NOBODY}", f"--regid={postgres.NOBODY}", "--clear-groups"
        super().start("listen_addresses=*", *settings, before=[*self.network.on(0), "setpriv", *nobody])


class Hosts(cli_fleet_test.Fleet):
    flags = [*cli_fleet_test.FLAGS, "--threads", "1"]  # they share the cores, where teams of threads would wait for each other

    def __init__(self, folder, server, network):
        self.folder, self.server, self.processes, self.network = folder, server, [], network
        # Who waits for a lost connection notices within seconds.
        self.address = f"postgresql://owner@{network.address(0)}/postgres?connect_timeout=2&tcp_user_timeout=3000"
        self.models = [f"net{number}.onnx" for number in range(MODELS)]
        for number, name in enumerate(self.models):
            onnx.save(large_functions(number), os.path.join(folder, name))
        # They share the cores, so what they measure differs: none is judged by that.
        self.run("db", "info", before=network.on(0))
        self.ask("CREATE FUNCTION pass_over() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$; "
                 "CREATE TRIGGER nobody BEFORE INSERT ON collage_noisy FOR EACH ROW EXECUTE FUNCTION pass_over()")

    def ask(self, statement):
        return self.server.ask(statement)

    def host(self, number):
        """A worker there, when those that the last one started have ended."""
        cache = os.path.join(self.folder, f"host {number}")
        os.makedirs(cache, mode=0o700, exist_ok=True)
        with open(os.path.join(cache, f"worker-{socket.gethostname()}.lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
        return self.start("worker", machine=f"host {number}", before=self.network.on(number), **cli_fleet_test.SHORT)

    def driver(self):
        return self.start("fleet", *self.models, *self.flags, before=self.network.on(0), **cli_fleet_test.SHORT)

    def play(self, rounds):
        """Rounds of kills and cuts, and then until all tasks are done."""
        workers = {number: self.host(number) for number in range(1, HOSTS + 1)}
        driver, acknowledged, kinds = self.driver(), set(), []
        self.until(lambda: len(self.rows()) > 3)
        while driver.poll() is None or rounds > 0 or kinds:
            if driver.poll() is not None:
                printed = self.finish(driver, driver.returncode)
                # A task's third death is its end, until somebody says that it may live.
                assert driver.returncode == 0 or "quarantined on" in printed, printed
                print(f"  the driver ended with {driver.returncode}: again", flush=True)
                self.run("db", "prune", "refused", before=self.network.on(0))
                driver = self.driver()
            if not kinds and rounds > 0:
                rounds, kinds = rounds - 1, random.sample(["worker", "driver", "server", "cut"], 4)
            time.sleep(random.uniform(0.2, 2))
            known = self.rows()
            assert acknowledged <= known, f"{len(acknowledged - known)} rows are lost"
            acknowledged = known
            kind, host = kinds.pop() if kinds else "", random.randint(1, HOSTS)
            if kind:
                print(f"  {len(known)} rows; {kind} {host}", flush=True)
            if kind == "worker":
                workers[host].kill()
                workers[host].communicate()
                workers[host] = self.host(host)
            elif kind == "driver":
                driver.kill()
                driver.communicate()
                driver = self.driver()
            elif kind == "server":
                self.server.crash()
                time.sleep(random.uniform(0, 3))
                self.server.start()
            elif kind == "cut":
                self.network.cut(host, random.uniform(1, 12))
            for worker in workers.values():
                assert worker.poll() is None, worker.communicate()
        assert driver.returncode == 0, self.finish(driver)
        for worker in workers.values():
            worker.send_signal(signal.SIGTERM)
            self.finish(worker)


def check(hosts, rounds):
    try:
        hosts.play(rounds)
        assert {task.split("|")[0] for task in hosts.tasks()} == {"done"} and len(hosts.tasks()) == MODELS, hosts.tasks()
        twice = hosts.ask("SELECT count(*) - count(DISTINCT key) FROM collage_costs WHERE kind = 'function'")
        print(f"  {len(hosts.rows())} rows, {twice} functions measured by two hosts", flush=True)
        hosts.run("tune", *hosts.models, *hosts.flags, machine="alone", database="alone.db")
        for model in hosts.models:
            fleet = hosts.plan(model, before=hosts.network.on(0))
            alone = hosts.plan(model, machine="alone", database="alone.db")
            assert fleet == alone and fleet, (model, fleet, alone)
    finally:
        hosts.end()


def main():
    if not postgres.tools() or os.geteuid() != 0 or not shutil.which("ip"):
        print("SKIPPED: PostgreSQL, `ip` and root are needed (Debian: postgresql, iproute2)")
        return 0
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    random.seed(seed)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir="/tmp") as data, Network() as network:
        server = Server(data, network)
        server.start()
        try:
            check(Hosts(folder, server, network), rounds)
        finally:
            server.crash()
    print("1 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
