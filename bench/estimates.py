"""How far plans from estimates are from tuned ones: docs/cost-model.md has the table.

    python bench/estimates.py MODEL.onnx... --db TUNED.db [-o DIR] [--turns 3] [--collage build/release/collage]

TUNED.db holds the measured costs of all these models. Of each model three programs are made: the tuned one, by the database; one from shipped rows of all
models, measuring nothing; and one from estimates, by rows of the other models alone (every row of a function of this one is left out). They take turns,
and the best median of each counts. Prints a row a model, the geometric means, and the seconds to the first answers.
"""

import argparse
import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def run(options, words, costs="", cache=None):
    """Of the command; its seconds. `costs` is a folder of shipped costs, "" none."""
    environment = os.environ | {"COLLAGE_COSTS": costs} | ({"COLLAGE_CACHE": cache} if cache else {})
    begin = time.perf_counter()
    subprocess.run([options.collage, *words], check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - begin


def texts_of(options, model, folder):
    """Of all functions that a plan of the model could use: without shipped rows each is listed."""
    database = os.path.join(folder, "listed.db")
    run(options, ["compile", model, "--budget", "0", "--db", database, "-o", os.path.join(folder, "listed.collage")])
    return {text for (text,) in sqlite3.connect(database).execute("SELECT text FROM costs WHERE kind IN ('trial', 'function', 'conversion')")}


def shipped(options, folder, without=()):
    """A folder of shipped costs of the database, less the rows of some texts."""
    database, costs = os.path.join(folder, "some.db"), os.path.join(folder, "costs")
    shutil.copy(options.db, database)
    os.makedirs(costs, exist_ok=True)
    with sqlite3.connect(database) as connection:
        connection.executemany("DELETE FROM costs WHERE text = ?", [(text,) for text in without])
    connection.close()
    run(options, ["db", "ship", os.path.join(costs, "some.costs"), "--db", database])
    os.remove(database)
    return costs


def milliseconds(options, artifact):
    report = artifact + ".json"
    run(options, ["bench", artifact, "--duration", "1", "--json", report])
    with open(report, encoding="utf-8") as file:
        return 1e3 * json.load(file)["latency_s"]["median"]


def of_model(options, model, all_costs):
    folder = os.path.join(options.output, os.path.splitext(os.path.basename(model))[0])
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    others = shipped(options, folder, texts_of(options, model, folder))
    seconds, programs = {}, {}
    for name, costs, words in (("tuned", "", ["--frozen-costs", "--db", options.db]), ("rows", all_costs, ["--budget", "0"]),
                               ("estimates", others, ["--budget", "0"])):
        programs[name] = os.path.join(folder, name + ".collage")
        seconds[name] = run(options, ["compile", model, "-o", programs[name], *words], costs, os.path.join(folder, name))
    took = {name: math.inf for name in programs}
    for _ in range(options.turns):
        for name, program in programs.items():
            took[name] = min(took[name], milliseconds(options, program))
    return took, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--db", required=True)
    parser.add_argument("-o", "--output", default="/tmp/collage_estimates")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--collage", default=os.path.join(HERE, "..", "build", "release", "collage"))
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    all_costs = shipped(options, options.output)
    print("| model | tuned | shipped rows | estimates | first answer with rows | without |\n| --- | --- | --- | --- | --- | --- |")
    logs = {"rows": [], "estimates": []}
    for model in options.models:
        took, seconds = of_model(options, model, all_costs)
        for name, of_all in logs.items():
            of_all.append(math.log(took[name] / took["tuned"]))
        print(f"| {os.path.splitext(os.path.basename(model))[0]} | {took['tuned']:.2f} ms | "
              + " | ".join(f"{took[name] / took['tuned']:.2f}x" for name in logs)
              + f" | {seconds['rows']:.1f} s | {seconds['estimates']:.1f} s |", flush=True)
    print("| geometric mean | | " + " | ".join(f"{math.exp(sum(of_all) / len(of_all)):.2f}x" for of_all in logs.values()) + " | | |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
