"""collage db: what was measured can be looked at, checked, carried to another file, and forgotten; in a file, and on a server.

    python tests/cli/cli_db_test.py

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import json
import os
import re
import sqlite3
import subprocess
import sys

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import command
import postgres
import tiny_models


class Bench:
    """A folder with a model whose costs on the reference are in costs.db, or in such a database of a server."""

    def __init__(self, folder, server=None):
        self.folder, self.server, self.addresses = folder, server, {}
        onnx.save(tiny_models.small_net(), os.path.join(folder, "net.onnx"))
        self.model("run", "costs.db")

    def place(self, name):
        """What --db is given for a file of that name."""
        if not self.server or not name.endswith(".db"):
            return name
        if name not in self.addresses:
            database = f"d{abs(hash((self.folder, name)))}"
            self.server.ask(f"CREATE DATABASE {database}")
            self.addresses[name] = self.server.address(database=database)
        return self.addresses[name]

    def overwrite(self, value, kind=None):
        """Changes the values of the rows behind Collage's back."""
        where = f" WHERE kind = '{kind}'" if kind else ""
        if self.server:
            self.server.ask(f"UPDATE collage_costs SET value = $v${value}$v$" + where, self.addresses["costs.db"])
        else:
            with sqlite3.connect(os.path.join(self.folder, "costs.db")) as database:
                database.execute("UPDATE costs SET value = ?" + where, (value,))

    def run(self, *arguments, status=0):
        arguments = [self.place(argument) for argument in arguments]
        result = command.run(list(arguments), self.folder, cache=os.path.join(self.folder, "cache"))
        assert result.returncode == status, f"exit status {result.returncode}: {result.stderr or result.stdout}"
        return result.stdout

    def model(self, verb, database, *flags, status=0):
        return self.run(verb, "net.onnx", "--targets", "reference", "--effort", "max", "--db", database, *flags,
                        status=status)

    def info(self, database="costs.db"):
        self.run("db", "info", "--db", database, "--json", "info.json")
        with open(os.path.join(self.folder, "info.json")) as file:
            return json.load(file)


def check_info(bench):
    info = bench.info()
    assert info["rows"]["function"] > 0 and info["rows"]["cover"] == 1, info
    assert info["targets"] == {"reference": info["rows"]["function"]}, info
    assert info["variants"] >= info["rows"]["function"] and info["invalid"] == info["stale"] == info["foreign"] == 0, info
    assert 0 < info["bytes"] < (info["limit_bytes"] or 1e9) and (info["limit_bytes"] is None) == bool(bench.server), info
    printed = bench.run("db", "info", "--db", "costs.db")
    assert "function" in printed and "reference" in printed and "0 rows of other versions" in printed, printed


def check_default_place(bench):
    """Without --db it is the one in the cache folder, and --db may stand before the verb."""
    bench.run("db", "info", status=5)
    bench.run("tune", "net.onnx", "--targets", "reference")
    assert "function" in bench.run("db", "info")
    assert "good" in bench.run("db", "--db", "costs.db", "verify")


def check_export_and_import(bench):
    """An imported database exports the same text, and serves a frozen run, which checks programs itself."""
    bench.run("db", "export", "rows.txt", "--db", "costs.db")
    bench.model("run", "other.db", "--frozen-costs", status=8)
    rows = sum(bench.info()["rows"].values())
    assert bench.run("db", "import", "rows.txt", "--db", "other.db").startswith(f"{rows} rows added")
    assert bench.info("other.db")["foreign"] == rows
    with open(os.path.join(bench.folder, "rows.txt")) as file:
        exported = file.read()
    assert bench.run("db", "export", "-", "--db", "other.db") == exported
    bench.model("run", "other.db", "--frozen-costs")
    own = rows - bench.info("other.db")["foreign"]
    assert own == bench.info()["rows"]["check"], f"{own} rows of checks that were made here"
    with open(os.path.join(bench.folder, "rows.txt"), "a") as file:
        file.write("nonsense\n")
    bench.run("db", "import", "rows.txt", "--db", "third.db", status=3)
    assert bench.info("third.db")["rows"] == {}


def check_signed_rows(bench):
    """Rows that a key signed serve whoever requires it like rows of their own; a changed one is a line."""
    for words in (["genpkey", "-algorithm", "ed25519", "-out", "key.pem"], ["pkey", "-in", "key.pem", "-pubout", "-out", "key.pub"]):
        subprocess.run(["openssl", *words], cwd=bench.folder, check=True, stderr=subprocess.DEVNULL)
    bench.run("db", "export", "rows.txt", "--db", "costs.db", "--sign", "key.pem")
    bench.run("db", "import", "rows.txt", "--db", "signed.db", "--require-signature", "key.pub")
    assert bench.info("signed.db")["foreign"] == 0 and bench.info("signed.db")["rows"] == bench.info()["rows"]
    with open(os.path.join(bench.folder, "rows.txt")) as file:
        lines = file.read().split("\n")
    changed = next(i for i, line in enumerate(lines) if '"seconds":' in line)
    lines[changed] = re.sub(r'"seconds":[^,}]*', '"seconds":0.5', lines[changed])
    with open(os.path.join(bench.folder, "rows.txt"), "w") as file:
        file.write("\n".join(lines))
    result = command.run(["db", "import", "rows.txt", "--db", bench.place("other.db"), "--require-signature", "key.pub"], bench.folder,
                         cache=os.path.join(bench.folder, "cache"))
    line = f"collage: rows.txt: line {changed + 1}: it was changed, or another key signed it\n"
    assert result.returncode == 3 and result.stderr == line, result
    assert bench.info("other.db")["rows"] == {}
    bench.run("db", "import", "rows.txt", "--db", "other.db", "--require-signature", "key.pem", status=2)


def check_reader(bench):
    """Who may only read runs what others measured, and wants nothing written."""
    bench.run("run", "net.onnx", "--targets", "reference", "--db", "costs.db")
    address = bench.place("costs.db")
    bench.server.ask("CREATE ROLE reader LOGIN", address)
    bench.server.ask("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader", address)
    result = command.run(["run", "net.onnx", "--targets", "reference", "--db", address.replace("owner@", "reader@")], bench.folder,
                         cache=os.path.join(bench.folder, "cache"))
    assert result.returncode == 0 and result.stderr == "", result


def check_verify(bench):
    """A value somebody changed for nonsense is found."""
    assert "all of them good" in bench.run("db", "verify", "--db", "costs.db")
    bench.overwrite("{}", "function")
    bench.run("db", "verify", "--db", "costs.db", status=6)


def check_damaged(bench):
    """Whatever a database holds, a run ends well, says that others wrote in it, and measures that again."""
    for damage in ('{"failure": 5, "cost": {"median": "soon"}, "target": 1, "variants": 7}', "[" * 100000):
        bench.overwrite(damage)
        assert bench.run("db", "verify", "--db", "costs.db", status=6) == ""
        arguments = ["run", "net.onnx", "--targets", "reference", "--effort", "max", "--db", bench.place("costs.db")]
        result = command.run(arguments, bench.folder, cache=os.path.join(bench.folder, "cache"))
        assert result.returncode == 0, f"{damage[:40]}: exit status {result.returncode}: {result.stderr}"
        assert "rows that were not written here" in result.stderr, f"{damage[:40]}: {result.stderr}"
        own = bench.info()
        assert sum(own["rows"].values()) > own["foreign"], own


def check_prune(bench):
    """What was forgotten is measured again; the rest is not."""
    kept = bench.info()["rows"]
    bench.run("db", "prune", "--db", "costs.db", status=2)  # what to forget is to be said
    assert bench.run("db", "prune", "stale", "--db", "costs.db").startswith("0 rows forgotten")
    assert bench.info()["rows"] == kept
    assert bench.run("db", "prune", "cover", "--db", "costs.db").startswith("1 rows forgotten")
    bench.model("run", "costs.db", "--frozen-costs", status=8)
    bench.model("run", "costs.db")
    bench.run("db", "prune", "all", "--db", "costs.db")
    assert bench.info()["rows"] == {}


def check_second_process(bench):
    """What one has measured another does not measure, whether by a file or a server."""
    tune = ("tune", "net.onnx", "--targets", "onednn,native,reference", "--effort", "fast", "--db", "costs.db")
    first, second = (re.match(r"net\.onnx +(\d+) measured, (\d+) known", bench.run(*tune)).groups() for _ in range(2))
    assert int(first[0]) > 0 and second[0] == "0" and int(second[1]) > int(first[1]), (first, second)


def check_server_away(bench):
    """One line, and the status of what is not there."""
    for verb in (("run", "net.onnx"), ("db", "info"), ("db", "import", "net.onnx"), ("db", "prune", "all")):
        result = command.run([*verb, "--db", "postgresql:///absent?host=" + bench.folder], bench.folder,
                             cache=os.path.join(bench.folder, "cache"))
        assert result.returncode == 5 and result.stderr.count("\n") == 1, result.stderr
        assert "cost database on a PostgreSQL server: connection to server" in result.stderr, result.stderr


def check_of_a_newer_version(bench):
    """Its tables are left as they are, and every command says why in a line."""
    bench.server.ask("UPDATE collage_schema SET version = 99", bench.addresses["costs.db"])
    for verb in (("run", "net.onnx"), ("tune", "net.onnx"), ("db", "verify")):
        result = command.run([*verb, "--db", bench.place("costs.db")], bench.folder, cache=os.path.join(bench.folder, "cache"))
        assert result.returncode == 5 and result.stderr.count("\n") == 1, result.stderr
        assert "version 99, of a newer Collage" in result.stderr, result.stderr
    assert bench.server.ask("SELECT count(*) > 5 FROM collage_costs", bench.addresses["costs.db"]) == "t"


CHECKS = (check_info, check_default_place, check_export_and_import, check_signed_rows, check_verify, check_damaged, check_prune, check_second_process)
ON_SERVERS = (check_info, check_export_and_import, check_verify, check_damaged, check_prune, check_second_process, check_reader, check_server_away,
              check_of_a_newer_version)

if __name__ == "__main__":
    failed = checks.run(CHECKS, sys.argv[1:], Bench)
    if postgres.tools():
        with postgres.server() as server:
            failed |= checks.run(ON_SERVERS, sys.argv[1:], lambda folder: Bench(folder, server))
    else:
        print("SKIPPED servers: PostgreSQL is not installed (Debian: postgresql)")
    sys.exit(failed)
