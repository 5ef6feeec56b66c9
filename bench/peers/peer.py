"""Runs a model in another runtime, in a process of its own, on command: one JSON object a line in, one a line out.

    python bench/peers/peer.py --runtime onnxruntime|openvino --model FILE --threads N [--precision f32] [--streams N]

    {"cmd": "load", "shapes": [[1, 3, 8, 8], …]}     {"ok": true, "version": …, "load_ms": …, "inputs": […], "outputs": […]}
    {"cmd": "inputs", "dir": D}                      {"ok": true, "count": …}     D/0_name.npy, D/1_name.npy …, by position
    {"cmd": "run", "warmup": 2, "iterations": 20}    {"ok": true, "samples_ms": […]}
    {"cmd": "call"}                                  {"ok": true, "call_ms": …}   the median of a model of one operation
    {"cmd": "throughput", "seconds": 0.5}            {"ok": true, "inferences": …, "seconds": …}   with --streams alone
    {"cmd": "outputs", "dir": D}                     {"ok": true, "files": […]}   of the latest run
    {"cmd": "quit"}                                  ends the process, as does the end of its input

`shapes` (optional) are those of the inputs, by position: the runtime compiles a model with dynamic dimensions for them alone, as
Collage does. A command that fails answers {"ok": false, "error": …} and the process goes on. Inputs and outputs are bound once; only
the inference call is timed, from Python: no more of it than `call` tells is Python's and not the runtime's. Two runtimes timed run by run disturb each other (idle workers spin), so a parent asks for
blocks of about 20 runs with 2 warm-ups and leaves 50 ms between the blocks.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time

import no_telemetry  # before any runtime
import numpy as np
import tensor_files

# The ONNX model y = Relu(x), of one float: all that it takes is the way to the runtime and back.
ONE_OPERATION = bytes.fromhex("080712003a330a0c0a0178120179220452656c751201675a0f0a0178120a0a08080112040a020801"
                              "620f0a0179120a0a08080112040a02080142040a00100d")


def runtime_class(name):
    if name == "onnxruntime":
        from onnxruntime_peer import OnnxRuntimePeer
        return OnnxRuntimePeer
    from openvino_peer import OpenVinoPeer
    return OpenVinoPeer


def milliseconds(infer, warmup, iterations):
    """Of each timed call; `warmup` untimed ones are first."""
    clock, samples = time.perf_counter_ns, []
    for _ in range(warmup):
        infer()
    for _ in range(iterations):
        start = clock()
        infer()
        samples.append((clock() - start) / 1e6)
    return samples


class Commands:
    """One method a command; each returns the fields of its reply."""

    def __init__(self, options):
        self._options = options
        self._peer = None
        self._ready = False

    def load(self, shapes=None):
        start = time.perf_counter()
        kind = runtime_class(self._options.runtime)
        self._peer = kind(self._options.model, self._options.threads, self._options.precision, shapes, self._options.streams)
        self._ready = False
        inputs, outputs = self._peer.signature()
        return {"version": kind.version, "load_ms": 1e3 * (time.perf_counter() - start), "inputs": inputs,
                "outputs": outputs}

    def inputs(self, dir):
        if self._peer is None:
            raise ValueError("no model is loaded")
        arrays, wanted = tensor_files.load(dir), len(self._peer.signature()[0])
        if len(arrays) != wanted:
            raise ValueError(f"{dir} holds {len(arrays)} tensors, the model has {wanted} inputs")
        self._ready = False
        self._peer.set_inputs(arrays)
        self._ready = True
        return {"count": len(arrays)}

    def run(self, warmup=2, iterations=20):
        self._need_inputs()
        return {"samples_ms": milliseconds(self._peer.infer, warmup, iterations)}

    def call(self, warmup=50, iterations=500):
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(ONE_OPERATION)
            file.flush()
            peer = runtime_class(self._options.runtime)(file.name, self._options.threads, "f32")
        peer.set_inputs([np.ones(1, np.float32)])
        return {"call_ms": statistics.median(milliseconds(peer.infer, warmup, iterations))}

    def throughput(self, seconds):
        self._need_inputs()
        if not self._options.streams:
            raise ValueError("throughput needs --streams")
        inferences, elapsed = self._peer.throughput(seconds)
        return {"inferences": inferences, "seconds": elapsed}

    def outputs(self, dir):
        self._need_inputs()
        return {"files": tensor_files.save(dir, self._peer.outputs())}

    def _need_inputs(self):
        if not self._ready:
            raise ValueError("no inputs are set")


def serve(commands, requests, replies):
    known = {name: getattr(commands, name) for name in ("load", "inputs", "run", "call", "throughput", "outputs")}
    for line in requests:
        try:
            request = json.loads(line)
            name = request.pop("cmd")
            if name == "quit":
                return
            if name not in known:
                raise ValueError(f"unknown command {name}")
            reply = {"ok": True, **known[name](**request)}
        except Exception as error:  # whatever the other runtime throws is the parent's to know
            reply = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def main():
    parser = argparse.ArgumentParser(description="Run a model in another runtime, driven by JSON lines on stdin.")
    parser.add_argument("--runtime", required=True, choices=("onnxruntime", "openvino"))
    parser.add_argument("--model", required=True, metavar="FILE")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), metavar="N")
    parser.add_argument("--precision", default="f32", help="f32 (default); OpenVINO also takes bf16, f16")
    parser.add_argument("--streams", type=int, default=0, help="so many inferences at a time; 0 (default): for latency")
    options = parser.parse_args()
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not mix with the replies
    serve(Commands(options), sys.stdin, replies)
    return 0


if __name__ == "__main__":
    sys.exit(main())
