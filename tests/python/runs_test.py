"""Runs of programs in Python: beside one another, in child processes, one after another, and with the cores that a group may use.

    python tests/python/runs_test.py [CHECK...]

Takes the build that COLLAGE_BIN lies in (default build/release). Prints "N passed, 0 failed" or what went wrong.
"""

import concurrent.futures
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import onnx

import built_package
import control_groups
import tiny_models
from built_package import program, saved

if built_package.BUILT:
    import collage


def large_product(folder):
    """A program that takes a while, saved, for one thread; and an input."""
    size = 700
    node = onnx.helper.make_node("MatMul", ["x", "x"], ["y"], "square")
    path = os.path.join(folder, "product.collage")
    program(folder, tiny_models.model([node], {"x": [size, size]}, {"y": [size, size]}), threads=1).save(path)
    return path, np.ones((size, size), np.float32)


def check_contexts(folder):
    """Threads share a loaded program: with a context each their runs end together, with one context one after the other."""
    path, x = large_product(folder)

    def ends(contexts):
        loaded = collage.load(path, contexts=contexts)
        together, ended = threading.Barrier(2), []

        def run():
            loaded(x)
            together.wait()
            loaded(x)
            ended.append(time.perf_counter())

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return ended[1] - ended[0]

    apart, beside = (min(ends(contexts) for _ in range(3)) for contexts in (1, 2))
    assert beside < apart / 2, f"{1e3 * beside:.1f} ms between the ends of two runs, {1e3 * apart:.1f} ms with one context"


def check_many_threads(folder):
    """More threads than contexts, each with inputs of its own: every result is the one that a run alone gives."""
    compiled = program(folder, tiny_models.small_net(), threads=1)
    compiled.save(os.path.join(folder, "net.collage"))
    loaded = collage.load(os.path.join(folder, "net.collage"), contexts=3)
    images = np.random.default_rng(0).random((8, 1, 3, 12, 12), np.float32)
    expected = [compiled(image) for image in images]
    wrong = []

    def run(index):
        wrong.extend(index for _ in range(100) if not np.array_equal(loaded(images[index]), expected[index]))

    with concurrent.futures.ThreadPoolExecutor(len(images)) as threads:
        list(threads.map(run, range(len(images))))
    assert not wrong, f"{len(wrong)} runs gave other bits"


def check_child_processes(folder):
    """What was loaded and run before runs in child processes, of os.fork and of multiprocessing, with the kernels of every library."""
    image = np.random.default_rng(0).random((1, 3, 12, 12), np.float32)
    model = saved(folder, tiny_models.small_net())
    for name in ("native", "onednn", "openvino", "reference"):
        try:
            compiled = collage.load(model).compile(targets=name, threads=2, database=os.path.join(folder, "costs.db"), effort="fast")
        except collage.Error as wrong:
            assert wrong.code == collage.ErrorCode.UNAVAILABLE, wrong
            continue
        compiled.save(os.path.join(folder, f"{name}.collage"))
        loaded = collage.load(os.path.join(folder, f"{name}.collage"))
        expected = compiled(image)
        loaded(image)
        same = lambda: all(np.array_equal(runs(image), expected) for runs in (compiled, loaded) for _ in range(20))
        assert same(), name

        for _ in range(60):  # workers of a library that fall asleep after a run hold its locks for a moment
            assert same(), name
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                os._exit(0 if same() else 1)
            assert os.waitpid(child, 0)[1] == 0, f"{name}: a child process"

        class Worker(multiprocessing.get_context("fork").Process):
            def run(self):
                signal.alarm(60)
                sys.exit(0 if same() else 1)

        workers = [Worker() for _ in range(2)]
        for worker in workers:
            worker.start()
        assert same(), f"{name}: the parent"
        for worker in workers:
            worker.join()
        assert [worker.exitcode for worker in workers] == [0, 0], f"{name}: processes of multiprocessing"


def check_random_numbers(folder):
    """Every run draws others; another program and artifacts of the model draw the same sequence of them."""
    nodes = [onnx.helper.make_node("RandomNormalLike", ["x"], ["noise"], "noise", seed=5.0), onnx.helper.make_node("Add", ["x", "noise"], ["y"])]
    model = tiny_models.model(nodes, {"x": [64]}, {"y": [64]})
    x, path = np.zeros(64, np.float32), os.path.join(folder, "noise.collage")
    compiled = program(folder, model)
    compiled.save(path)
    drawn = [compiled(x) for _ in range(3)]
    assert len({values.tobytes() for values in drawn}) == 3, drawn
    for again in (program(folder, model), program(folder, model, targets="native"), collage.load(path)):
        np.testing.assert_array_equal([again(x) for _ in range(3)], drawn)


QUOTA = """
import collage, sys
print(collage.load(sys.argv[1]).compile(targets="reference", database=sys.argv[1] + ".db").report["env"]["threads"])
"""


def check_quota(folder):
    """As many threads as the control group around the process has cores for."""
    model, environment = saved(folder, tiny_models.relu_model()), os.environ | {"PYTHONPATH": os.path.dirname(built_package.PACKAGE)}
    with control_groups.limited("cpu") as enter:
        if enter is None:
            return
        told = subprocess.run([sys.executable, "-c", QUOTA, model], env=environment, capture_output=True, text=True, preexec_fn=enter)
    assert told.returncode == 0 and told.stdout == "1\n", told


def main(arguments):
    return built_package.run([check_contexts, check_many_threads, check_child_processes, check_random_numbers, check_quota], arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
