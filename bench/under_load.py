"""Latency of models beside busy processes, in turns with other runtimes: the percentiles of each.

    python bench/under_load.py MODEL.onnx... [--threads N] [--busy 0,1,2] [--seconds 2] [--rounds 5] [--json FILE]

Each model is compiled to a file, which a process of its own runs; ONNX Runtime and OpenVINO have one each. In every round and beside every number of busy
processes (each a loop that wants a whole core) they take turns of so many seconds, in an order that rotates, while the others sleep. A model may be given
compiled, as MODEL.onnx=FILE.collage.

Exit status 1: a percentile is more than a tenth above the better of the two others'.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "peers"), os.path.join(HERE, "..", "models")]

import tensor_files
import turns
from client import Peer
from random_inputs import random_inputs

PERCENTILES = (50, 95, 99)
PAUSE = 0.1  # seconds after a turn, for threads that wait awake


class Own(Peer):
    """A compiled file, run by this script with --serve: it answers as peer.py does."""

    def __init__(self, path):
        self.runtime = "collage"
        self._process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--serve", path], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)


def serve(path):
    """What peer.py does, with a compiled file."""
    import collage
    import peer

    class Commands(peer.Commands):
        def load(self, shapes=None):
            self._peer = self
            self._program = collage.load(path)
            return {"version": collage.__version__}

        def signature(self):
            return self._program.inputs, self._program.outputs

        def set_inputs(self, arrays):
            aligned = {info.name: collage.empty(array.shape, str(array.dtype)) for info, array in zip(self._program.inputs, arrays)}
            for memory, array in zip(aligned.values(), arrays):
                memory[...] = array
            results = self._program.run(aligned)
            into = {name: collage.empty(array.shape, str(array.dtype)) for name, array in results.items()}
            self.infer = lambda: self._program.run(aligned, into)

    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    peer.serve(Commands(None), sys.stdin, replies)


class Busy:
    """So many processes that each want a core."""

    def __init__(self, count):
        self._processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]

    def __enter__(self):
        time.sleep(0.3 if self._processes else 0)  # they start
        return self

    def __exit__(self, *_):
        for process in self._processes:
            process.kill()
            process.wait()


def turn(contender, seconds):
    samples, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        samples += contender.call("run", warmup=0 if samples else 2, iterations=10)["samples_ms"]
    time.sleep(PAUSE)
    return samples


def measure(contenders, busy, seconds, rounds):
    """{busy processes: {contender: [ms]}}"""
    found = {count: {contender.runtime: [] for contender in contenders} for count in busy}
    order = list(contenders)
    for _ in range(rounds):
        for count in busy:
            order.append(order.pop(0))
            with Busy(count):
                for contender in order:
                    found[count][contender.runtime] += turn(contender, seconds)
    return found


def compiled(model, threads, folder):
    import collage
    path = os.path.join(folder, "model.collage")
    collage.load(model).compile(threads=threads).save(path)
    return path


def contend(model, own, options):
    arrays = list(random_inputs(onnx.load(model, load_external_data=False), 1).items())
    with tempfile.TemporaryDirectory() as folder:
        tensor_files.save(folder, arrays)
        path = own or compiled(model, options.threads, folder)
        contenders = [Own(path), *(Peer(name, model, options.threads) for name in ("onnxruntime", "openvino"))]
        try:
            for contender in contenders:
                contender.call("load")
                contender.call("inputs", dir=folder)
            return measure(contenders, options.busy, options.seconds, options.rounds)
        finally:
            for contender in contenders:
                contender.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--busy", type=lambda text: [int(count) for count in text.split(",")], default=[0, 1, 2])
    parser.add_argument("--seconds", type=float, default=2, help="a turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="write the figures here")
    parser.add_argument("--serve", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return 0
    print(f"{'model':16}{'busy':>5}  {'runtime':12}{'runs':>6}" + "".join(f"{f'p{p} ms':>10}" for p in PERCENTILES) + "   to the better peer")
    figures, wrong = {}, []
    for given in options.models:
        model, _, own = given.partition("=")
        name = os.path.splitext(os.path.basename(model))[0]
        figures[name] = contend(model, own, options)
        for count, of_all in figures[name].items():
            marks = {runtime: np.percentile(samples, PERCENTILES) for runtime, samples in of_all.items()}
            best = np.minimum(marks["onnxruntime"], marks["openvino"])
            for runtime, of_one in marks.items():
                line = f"{name:16}{count:5}  {runtime:12}{len(of_all[runtime]):6}" + "".join(f"{ms:10.2f}" for ms in of_one)
                print(line + ("   " + "".join(f"{ratio:7.2f}" for ratio in of_one / best) if runtime == "collage" else ""), flush=True)
            wrong += [f"{name} beside {count} busy processes: p{p} is {ratio:.2f} times the better peer's"
                      for p, ratio in zip(PERCENTILES, marks["collage"] / best) if ratio > 1.1]
    return turns.finish(figures, options.json, wrong)


if __name__ == "__main__":
    sys.exit(main())
