"""collage fleet and collage worker: machines that share a database measure each model once, whatever ends.

    python tests/cli/cli_fleet_test.py [CHECK...]

Each worker has a cache folder of its own, as on a machine of its own. Prints one line a failure, then "N passed, N failed"; exits with 1 if
anything failed.
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import command
import postgres
import tiny_models
import tuning

FLAGS = [*tuning.TWO_TOOLCHAINS, "--effort", "fast"]
KEY = os.urandom(32)  # one owner's on all machines
SHORT = {"COLLAGE_MEASURE_TIMEOUT": "8"}  # seconds: of leases too


class Fleet:
    """A folder with models, a database, and the processes that are started."""

    flags = FLAGS

    def __init__(self, folder, server):
        self.folder, self.server, self.processes = folder, server, []
        database = f"d{abs(hash(folder))}"
        server.ask(f"CREATE DATABASE {database}")
        self.address = server.address(database=database)
        onnx.save(tiny_models.small_net(), os.path.join(folder, "a.onnx"))
        onnx.save(tiny_models.small_net(filters=5), os.path.join(folder, "b.onnx"))
        onnx.save(tiny_models.small_net(filters=3), os.path.join(folder, "c.onnx"))
        onnx.save(tuning.many_functions(120), os.path.join(folder, "long.onnx"))

    def measuring(self, how):
        """A program that measures with other costs (other_costs.py)."""
        script = os.path.join(self.folder, f"{how}.sh")
        if not os.path.exists(script):
            with open(os.open(script, os.O_WRONLY | os.O_CREAT, 0o755), "w") as file:
                file.write(f'#!/bin/sh\nexec "{sys.executable}" "{HERE}/other_costs.py" {how} "$@"\n')
        return script

    def start(self, *arguments, machine="driver", cores=None, before=(), database=None, **environment):
        """`before`: what the command begins with."""
        cache = os.path.join(self.folder, machine)
        os.makedirs(cache, mode=0o700, exist_ok=True)
        with open(os.open(os.path.join(cache, "seal.key"), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(KEY)
        variables = {k: v for k, v in os.environ.items() if k not in command.CACHE_VARIABLES}
        variables |= {"COLLAGE_CACHE": cache, "COLLAGE_WORKER": self.measuring("steady")} | environment
        self.processes.append(subprocess.Popen(
            [*before, command.COLLAGE, *arguments, "--db", database or self.address], cwd=self.folder, env=variables, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=cores and (lambda: os.sched_setaffinity(0, cores))))
        return self.processes[-1]

    def worker(self, machine, *flags, **more):
        known = self.ask("SELECT count(*) FROM collage_workers") if self.has_tables() else "0"
        process = self.start("worker", *flags, machine=machine, **more)
        self.until(lambda: self.has_tables() and self.ask("SELECT count(*) FROM collage_workers") != known or process.poll() is not None)
        return process

    def run(self, *arguments, status=0, **more):
        return self.finish(self.start(*arguments, **more), status)

    @staticmethod
    def finish(process, status=0):
        out, err = process.communicate(timeout=600)
        assert process.returncode == status, f"exit status {process.returncode}: {err or out}"
        return out + err

    def ask(self, statement):
        return self.server.ask(statement, self.address)

    def has_tables(self):
        return self.ask("SELECT to_regclass('collage_workers') IS NOT NULL") == "t"

    def rows(self):
        """What was measured, and when."""
        lines = self.ask("SELECT kind, key, md5(value), written FROM collage_costs WHERE kind IN ('function', 'conversion')").split("\n")
        return set(filter(None, lines))

    def plan(self, model, **more):
        """The kernels that any machine chooses by what the database knows."""
        self.run("run", model, *self.flags, "--frozen-costs", "--json", "report.json", **more)
        with open(os.path.join(self.folder, "report.json"), encoding="utf-8") as file:
            return [(kernel["name"], kernel["target"], kernel.get("variant")) for kernel in json.load(file)["kernels"]]

    def tasks(self):
        """State, attempts and deaths of each."""
        return sorted(self.ask("SELECT state, attempts, died FROM collage_tasks").split("\n"))

    @staticmethod
    def until(condition):
        deadline = time.monotonic() + 300
        while not condition():
            assert time.monotonic() < deadline, "it does not come"
            time.sleep(0.05)

    def until_measuring(self):
        """The rows that are there by then, some of the first task's."""
        self.until(lambda: self.has_tables() and len(self.rows()) > 5 and self.tasks()[0].startswith("running"))
        return self.rows()

    def end(self):
        for process in self.processes:
            process.kill()
            process.communicate()


def check_each_task_once(fleet):
    """Three workers, three models: each is measured once, and what was measured serves everybody."""
    workers = [fleet.worker(f"machine {n}") for n in range(3)]
    models = ["a.onnx", "b.onnx", "c.onnx"]
    assert "3 tasks done" in fleet.run("fleet", *models, *FLAGS)
    assert fleet.tasks() == ["done|1|0"] * 3, fleet.tasks()
    rows = fleet.rows()
    assert "3 tasks done" in fleet.run("fleet", *models, *FLAGS) and fleet.tasks() == ["done|1|0"] * 3
    printed = fleet.run("tune", *models, *FLAGS)
    assert len(re.findall(r"^\w\.onnx  0 measured", printed, re.MULTILINE)) == 3, printed
    assert fleet.rows() == rows, "all was there"
    printed = fleet.run("db", "info")
    assert re.search(r"^done +3 tasks$", printed, re.MULTILINE) and re.search(r"^workers +3 present$", printed, re.MULTILINE), printed
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
    printed = "".join(fleet.finish(worker) for worker in workers)
    assert printed.count("onnx  done, ") == 3, printed
    assert fleet.ask("SELECT count(*) FROM collage_workers") == "0"
    # Other effort is another task.
    fleet.worker("machine 0", "--duration", "5")
    fleet.run("fleet", "a.onnx", *FLAGS[:-1], "default")
    assert len(fleet.tasks()) == 4


def check_two_kinds_of_machine(fleet):
    """Each has a task of its own, and costs of its own."""
    if len(os.sched_getaffinity(0)) < 2:
        return
    fleet.worker("small", cores={min(os.sched_getaffinity(0))})
    fleet.worker("large")
    assert "2 tasks done" in fleet.run("fleet", "c.onnx", *FLAGS)
    assert fleet.ask("SELECT count(DISTINCT fingerprint) FROM collage_tasks WHERE state = 'done'") == "2"
    for threads in (1, len(os.sched_getaffinity(0))):
        assert int(fleet.ask(f"SELECT count(*) FROM collage_costs WHERE context LIKE '%threads={threads} %'")) > 5, threads


def check_killed_worker(fleet):
    """What a worker measured before kill -9 stays; another one does the rest."""
    driver = fleet.start("fleet", "long.onnx", *FLAGS, **SHORT)
    killed = fleet.worker("first", **SHORT)
    kept = fleet.until_measuring()
    killed.kill()
    fleet.worker("second", **SHORT)
    assert "1 tasks done" in fleet.finish(driver)
    assert fleet.tasks() == ["done|2|1"], fleet.tasks()
    assert kept <= fleet.rows(), "it was measured again"


def check_told_to_end(fleet):
    """After its time for one task, and after SIGTERM, a worker gives the task back at once, and nothing is lost."""
    worker = fleet.worker("first", "--budget", "1")
    driver = fleet.start("fleet", "long.onnx", *FLAGS)
    fleet.until(lambda: fleet.ask("SELECT count(*) FROM collage_tasks WHERE attempts > 1 AND state = 'running'") == "1")
    kept = fleet.until_measuring()
    worker.send_signal(signal.SIGTERM)
    given_back = fleet.finish(worker).count("given back")
    assert given_back > 1 and fleet.tasks() == [f"waiting|{given_back}|0"], (given_back, fleet.tasks())
    driver.send_signal(signal.SIGINT)
    assert "interrupted: the tasks stay" in fleet.finish(driver, 130)
    fleet.worker("second")
    assert "1 tasks done" in fleet.run("fleet", "long.onnx", *FLAGS)
    assert kept <= fleet.rows(), "it was measured again"
    assert fleet.tasks() == [f"done|{given_back + 1}|0"], fleet.tasks()


def check_lost_server(fleet):
    """A server that crashes and comes again costs nobody a task."""
    worker = fleet.worker("first")
    driver = fleet.start("fleet", "long.onnx", *FLAGS)
    kept = fleet.until_measuring()
    for _ in range(2):
        fleet.server.crash()
        time.sleep(2)
        fleet.server.start()
        time.sleep(1)
    assert "1 tasks done" in fleet.finish(driver)
    assert fleet.tasks() == ["done|1|0"], fleet.tasks()
    assert kept <= fleet.rows()
    worker.send_signal(signal.SIGTERM)
    fleet.finish(worker)
    measured, known = re.search(r"^long.onnx  (\d+) measured, (\d+) known", fleet.run("tune", "long.onnx", *FLAGS), re.MULTILINE).groups()
    assert int(measured) < 10 and int(known) >= 120, (measured, known)


def check_models_that_travel(fleet):
    """A machine that does not see a model's file takes it from the database; a bad one is a line, and no other attempt."""
    with open(os.path.join(fleet.folder, "bad.onnx"), "w") as file:
        file.write("no model")
    driver = fleet.start("fleet", "a.onnx", "bad.onnx", *FLAGS)
    fleet.until(lambda: fleet.has_tables() and fleet.ask("SELECT count(*) FROM collage_models") == "2")
    for name in ("a.onnx", "bad.onnx"):
        os.remove(os.path.join(fleet.folder, name))
    fleet.worker("first")
    printed = fleet.finish(driver, 1)
    assert fleet.tasks() == ["done|1|0", "failed|1|0"], fleet.tasks()
    assert re.search(r"/bad\.onnx  failed on .* threads=\d+: \S*/bad\.onnx: is not an ONNX model", printed), printed
    assert "1 of 2 tasks failed" in printed, printed


def check_quarantine(fleet):
    """A task whose process crashed three times is left alone, until it is pruned."""
    worker = fleet.worker("first")
    driver = fleet.start("fleet", "long.onnx", *FLAGS)
    while driver.poll() is None:
        child = subprocess.run(["pgrep", "-P", str(worker.pid)], check=False, text=True, stdout=subprocess.PIPE).stdout.split()
        if child:
            os.kill(int(child[0]), signal.SIGSEGV)
        time.sleep(0.3)
    printed = fleet.finish(driver, 1)
    assert "quarantined on" in printed and "ended by signal 11" in printed, printed
    assert fleet.tasks() == ["quarantined|3|3"], fleet.tasks()
    assert "quarantined" in fleet.run("fleet", "long.onnx", *FLAGS, status=1)
    fleet.run("db", "prune", "refused")
    assert "1 tasks done" in fleet.run("fleet", "long.onnx", *FLAGS)


def check_lying_node(fleet):
    """Costs that a machine halves at random decide nothing once its calibration shows that it does."""
    script = fleet.measuring("lying")
    for n in range(2):
        fleet.worker(f"honest {n}")
    models = ["a.onnx", "b.onnx"]
    assert "2 tasks done" in fleet.run("fleet", *models, *FLAGS)
    plans = [fleet.plan(model) for model in models]
    of_liar = lambda table: int(fleet.ask(f"SELECT count(*) FROM {table} WHERE machine LIKE '%/liar' AND kind = 'function'"))
    # By hand, with more care: what it measures counts, as nobody knows anything of that machine.
    fleet.run("tune", *models, *FLAGS[:-1], "default", machine="liar", COLLAGE_WORKER=script)
    samples = of_liar("collage_costs")
    assert samples > 10 and of_liar("collage_answers") == samples, samples
    printed = fleet.run("worker", machine="liar", COLLAGE_WORKER=script, status=5)
    assert "/liar is noisy: " in printed, printed
    assert fleet.ask("SELECT machine LIKE '%/liar' FROM collage_noisy") == "t", "it alone"
    assert of_liar("collage_answers") == 0 and of_liar("collage_costs") == samples
    assert [fleet.plan(model) for model in models] == plans
    assert re.search(r"/liar +\d+ samples, which decide nothing: .* differs by ", fleet.run("db", "info"))
    # What may rest on its costs is done again, by others.
    fleet.until(lambda: [task.split("|")[0] for task in fleet.tasks()] == ["done", "done"])
    assert "2 tasks done" in fleet.run("fleet", *models, *FLAGS) and fleet.tasks() == ["done|2|0"] * 2, fleet.tasks()
    # What is fastest among equals is found by the clock, again.
    of_targets = lambda plan: [(name, target) for name, target, _ in plan]
    assert [of_targets(fleet.plan(model)) for model in models] == [of_targets(plan) for plan in plans]
    fleet.run("db", "prune", "refused")
    assert of_liar("collage_costs") == 0 and fleet.ask("SELECT count(*) FROM collage_noisy") == "0"


def check_builder_and_runner(fleet):
    """One machine compiles, another one, which has nothing to link kernels with, measures what was built, and nothing is left to measure."""
    kernels, tools, own = (os.path.join(fleet.folder, name) for name in ("kernels", "no tools", "runner/kernels"))
    for folder in (kernels, tools):
        os.mkdir(folder)
    for machine in ("runner", "builder"):
        os.makedirs(os.path.join(fleet.folder, machine, "kernels"), mode=0o700)
        os.chmod(os.path.join(fleet.folder, machine), 0o700)
        os.symlink(kernels, os.path.join(fleet.folder, machine, "kernels", "shared"))
    runner = fleet.worker("runner", "--emit", "costs", PATH=tools)
    driver = fleet.start("fleet", "a.onnx", "b.onnx", *FLAGS)
    fleet.until(lambda: fleet.has_tables() and len(fleet.tasks()) == 2)
    time.sleep(2)
    assert fleet.tasks() == ["waiting|0|0"] * 2 and not fleet.rows(), "nobody built them"
    builder = fleet.worker("builder", "--emit", "kernels")
    assert "2 tasks done" in fleet.finish(driver)
    assert fleet.tasks() == ["done|2|0"] * 2, fleet.tasks()
    for worker, ends in ((builder, "built"), (runner, "done")):
        worker.send_signal(signal.SIGTERM)
        assert fleet.finish(worker).count(f"onnx  {ends}, ") == 2
    assert fleet.ask("SELECT DISTINCT machine LIKE '%/runner' FROM collage_costs") == "t", "the builder measured nothing"
    own, built = set(os.listdir(own)) - {"shared"}, set(os.listdir(kernels))
    assert len(own) > 5 and own <= built, (len(own), own - built)
    printed = fleet.run("tune", "a.onnx", "b.onnx", *FLAGS)
    assert len(re.findall(r"^\w\.onnx  0 measured", printed, re.MULTILINE)) == 2, printed


def check_refusals(fleet):
    """One line each: flags of this machine, no server, a second worker on a machine."""
    assert "--plugin is not for other machines" in fleet.run("fleet", "a.onnx", "--plugin", "x.so", status=2)
    fleet.run("fleet", "absent.onnx", status=3)
    worker = fleet.worker("first")
    assert "another worker is on this machine" in fleet.run("worker", machine="first", status=5)
    # Whoever may write tasks names no code.
    flags, fingerprint = '["--plugin=/tmp/evil.so"]', fleet.ask("SELECT fingerprint FROM collage_workers")
    with open(os.path.join(fleet.folder, "a.onnx"), "rb") as file:
        content = hashlib.sha256(file.read()).hexdigest()
    task = hashlib.sha256(f"{fingerprint}\n{content}\n{flags}".encode()).hexdigest()
    fleet.ask("INSERT INTO collage_tasks(id, fingerprint, processor, content, model, flags) "
              f"VALUES('{task}', '{fingerprint}', '', '{content}', '{fleet.folder}/a.onnx', '{flags}')")
    fleet.until(lambda: fleet.tasks() == ["failed|1|0"])
    assert fleet.ask("SELECT error FROM collage_tasks") == "no worker takes the flag '--plugin=/tmp/evil.so'"
    worker.send_signal(signal.SIGTERM)
    fleet.finish(worker)
    for verb in (["fleet", "a.onnx"], ["worker"]):
        result = command.run([*verb, "--db", "costs.db"], fleet.folder, cache=os.path.join(fleet.folder, "cache"))
        assert result.returncode == 2 and "tasks are kept on a server" in result.stderr, result
        result = command.run([*verb, "--db", "postgresql:///absent?host=" + fleet.folder], fleet.folder, cache=os.path.join(fleet.folder, "cache"))
        assert result.returncode == 5 and result.stderr.count("\n") == 1, result
    assert "--db" in command.run(["worker"], fleet.folder, cache=os.path.join(fleet.folder, "cache")).stderr


CHECKS = (check_each_task_once, check_two_kinds_of_machine, check_killed_worker, check_told_to_end, check_lost_server,
          check_models_that_travel, check_quarantine, check_lying_node, check_builder_and_runner, check_refusals)


def named(check, server):
    def checked(folder):
        fleet = Fleet(folder, server)
        try:
            check(fleet)
        finally:
            fleet.end()
    return check.__name__, checked


if __name__ == "__main__":
    if not postgres.tools():
        print("SKIPPED all: PostgreSQL is not installed (Debian: postgresql)")
        sys.exit(0)
    with postgres.server() as running:
        sys.exit(checks.run([named(check, running) for check in CHECKS], sys.argv[1:]))
