"""The peers answer their protocol, agree with each other, and survive bad requests; the comparison finds differences.

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import os
import subprocess
import sys

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
for room in ("models", "bench", "bench/peers", "tests"):
    sys.path.insert(0, os.path.join(ROOT, room))

import checks
import generate
import tensor_files
from client import Peer, PeerError
from compare_outputs import compare

MODELS = ("mnist", "bert_base", "yolov3", "nasrnn")  # one input, several inputs, several outputs, constant products


def python(script, *arguments):
    return subprocess.run([sys.executable, os.path.join(ROOT, script), *arguments], capture_output=True, text=True)


def expect(folder, name):
    path = generate.generate(name, folder, small=True)[0]
    result = python("bench/peers/expected.py", path, "--seed", "3", "-o", folder)
    assert result.returncode == 0, result.stderr
    return path


def check_peers_agree(folder):
    """Each runtime's outputs, run block after run block, are what ONNX Runtime gives in a process of its own."""
    for name in MODELS:
        here = os.path.join(folder, name)
        path = expect(here, name)
        for runtime in ("onnxruntime", "openvino"):
            with Peer(runtime, path, 2) as peer:
                loaded = peer.call("load")
                assert loaded["version"].startswith(runtime), loaded
                assert peer.call("inputs", dir=os.path.join(here, "inputs"))["count"] == len(loaded["inputs"])
                samples = peer.call("run", warmup=1, iterations=5)["samples_ms"]
                assert len(samples) == 5 and all(s > 0 for s in samples), samples
                files = peer.call("outputs", dir=os.path.join(here, runtime))["files"]
                wanted = sorted(os.listdir(os.path.join(here, "outputs")))
                assert sorted(os.path.basename(f) for f in files) == wanted, (files, wanted)
            result = python("bench/compare_outputs.py", os.path.join(here, runtime), os.path.join(here, "outputs"))
            assert result.returncode == 0, (name, runtime, result.stdout)


def check_new_inputs_count(folder):
    """Setting other inputs changes the outputs: nothing is left of the first ones."""
    path = expect(os.path.join(folder, "m"), "mnist")
    for runtime in ("onnxruntime", "openvino"):
        with Peer(runtime, path, 1) as peer:
            peer.call("load")
            outputs = []
            for value in (0.0, 1.0):
                tensor_files.save(os.path.join(folder, str(value)), [("x", np.full((1, 1, 28, 28), value, np.float32))])
                peer.call("inputs", dir=os.path.join(folder, str(value)))
                peer.call("run", warmup=0, iterations=1)
                outputs.append(np.load(peer.call("outputs", dir=os.path.join(folder, "out"))["files"][0]))
            assert not np.allclose(*outputs), runtime


def check_shapes(folder):
    """The shapes that a load names become the model's own; they must be as many as its inputs."""
    path = generate.generate("mnist", folder, small=True, dynamic_batch=True)[0]
    for runtime in ("onnxruntime", "openvino"):
        with Peer(runtime, path, 1) as peer:
            assert not isinstance(peer.call("load")["inputs"][0]["shape"][0], int)
            loaded = peer.call("load", shapes=[[3, 1, 28, 28]])
            assert loaded["inputs"][0]["shape"] == [3, 1, 28, 28], (runtime, loaded)
            assert loaded["outputs"][0]["shape"][0] == 3, (runtime, loaded)
            tensor_files.save(os.path.join(folder, "three"), [("x", np.ones((3, 1, 28, 28), np.float32))])
            peer.call("inputs", dir=os.path.join(folder, "three"))
            (output,) = peer.call("outputs", dir=os.path.join(folder, "out", runtime))["files"]
            assert np.load(output).shape[0] == 3, runtime
            try:
                peer.call("load", shapes=[[3, 1, 28, 28], [1]])
                raise AssertionError("two shapes for one input")
            except PeerError as error:
                assert "ValueError" in str(error), error


def check_throughput(folder):
    """Several inferences at a time, with the outputs of one; only where streams were asked for."""
    path = expect(folder, "mnist")
    for runtime in ("onnxruntime", "openvino"):
        with Peer(runtime, path, 2, streams=3) as peer:
            peer.call("load")
            peer.call("inputs", dir=os.path.join(folder, "inputs"))
            found = peer.call("throughput", seconds=0.05)
            assert found["inferences"] >= 3 and found["seconds"] > 0, (runtime, found)
            peer.call("outputs", dir=os.path.join(folder, runtime))
        result = python("bench/compare_outputs.py", os.path.join(folder, runtime), os.path.join(folder, "outputs"))
        assert result.returncode == 0, (runtime, result.stdout)
        with Peer(runtime, path, 2) as peer:
            peer.call("load")
            peer.call("inputs", dir=os.path.join(folder, "inputs"))
            try:
                peer.call("throughput", seconds=0.05)
                raise AssertionError("throughput without streams")
            except PeerError as error:
                assert "--streams" in str(error), error


def check_call(folder):
    """What a call costs is known without a model, is less than any run of one, and leaves the loaded one alone."""
    path = expect(folder, "mnist")
    for runtime in ("onnxruntime", "openvino"):
        with Peer(runtime, path, 1) as peer:
            before = peer.call("call")["call_ms"]
            peer.call("load")
            peer.call("inputs", dir=os.path.join(folder, "inputs"))
            peer.call("run", warmup=1, iterations=5)
            assert before > 0 and peer.call("call")["call_ms"] > 0, runtime
            (output,) = peer.call("outputs", dir=os.path.join(folder, "out", runtime))["files"]
            assert np.load(output).size > 1, runtime


def check_no_telemetry(folder):
    """Runtimes are imported where nothing is reported of them, whatever the environment says."""
    for module in ("onnxruntime_peer", "openvino_peer"):
        script = ("import peer, sys, os; peer.runtime_class('" + module.removesuffix("_peer") + "'); "
                  "print(os.environ['ORT_DISABLE_TELEMETRY'], os.environ['ORT_TELEMETRY_DISABLED'], sys.modules['openvino_telemetry'])")
        result = subprocess.run([sys.executable, "-c", script], cwd=os.path.join(ROOT, "bench", "peers"), capture_output=True, text=True,
                                env=os.environ | {"ORT_DISABLE_TELEMETRY": "0"})
        assert result.stdout == "1 1 None\n", result


def check_bad_requests(folder):
    """A refused command says why and leaves the peer in use; the end of its input ends it quietly."""
    path = expect(folder, "mnist")
    for runtime in ("onnxruntime", "openvino"):
        peer = Peer(runtime, path, 1)
        for command, fields, words in (("run", {}, "no inputs"), ("inputs", {"dir": folder}, "no model"),
                                       ("load", {}, None), ("fly", {}, "unknown command"),
                                       ("inputs", {"dir": os.path.join(folder, "absent")}, "No such file"),
                                       ("run", {"iterations": "many"}, "no inputs"),
                                       ("inputs", {"dir": os.path.join(folder, "inputs")}, None), ("run", {}, None)):
            try:
                peer.call(command, **fields)
                assert words is None, (runtime, command)
            except PeerError as error:
                assert words is not None and words in str(error), (runtime, command, error)
        assert peer.close() == 0
    with Peer("onnxruntime", os.path.join(folder, "absent.onnx"), 1) as peer:
        try:
            peer.call("load")
            raise AssertionError("a missing model loads")
        except PeerError as error:
            assert "absent.onnx" in str(error)


def check_comparison(folder):
    """The comparison accepts rounding, and refuses wrong values, shapes, types and non-finite numbers."""
    b = np.linspace(-2, 2, 1001, dtype=np.float32)
    off, nan = b.copy(), b.copy()
    off[500] += 1e-3
    nan[7] = np.nan
    assert compare(b * np.float32(1 + 1e-5), b)[0] and compare(nan, nan)[0]
    for wrong in (off, nan, b[:-1], b.astype(np.float64), -b, np.zeros_like(b)):
        assert not compare(wrong, b)[0]
    assert not compare(b, nan)[0]
    assert compare(np.arange(3), np.arange(3))[0] and not compare(np.arange(3), np.arange(3) + 1)[0]
    first, second = (tensor_files.save(os.path.join(folder, d), [("y", v)])[0] for d, v in (("a", b), ("b", off)))
    assert python("bench/compare_outputs.py", first, first).returncode == 0
    assert python("bench/compare_outputs.py", second, first).returncode == 1
    assert python("bench/compare_outputs.py", os.path.join(folder, "none"), first).returncode == 2


CHECKS = (check_peers_agree, check_new_inputs_count, check_shapes, check_throughput, check_call, check_no_telemetry, check_bad_requests,
          check_comparison)


if __name__ == "__main__":
    sys.exit(checks.run(CHECKS, sys.argv[1:]))
