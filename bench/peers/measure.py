"""Times models in the other runtimes, interleaved: a table of medians in milliseconds.

    python bench/peers/measure.py MODEL.onnx… [--threads N] [--blocks 5] [--iterations 20] [--runtimes onnxruntime,openvino]

Blocks of one runtime alternate with blocks of the next, with 2 warm-ups in each and 50 ms between them. A block's figure is
the median of its runs; printed are the best block and, after a slash, the median block: far apart means a noisy machine.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "models"))

import tensor_files
from client import Peer, PeerError
from random_inputs import random_inputs


def measure(path, runtimes, threads, blocks, iterations):
    """{runtime: [median of each block]}; a runtime that fails is left out, and why is said on stderr."""
    medians = {}
    with tempfile.TemporaryDirectory() as folder:
        tensor_files.save(folder, list(random_inputs(onnx.load(path, load_external_data=False), 1).items()))
        peers = []
        for runtime in runtimes:
            peer = Peer(runtime, path, threads)
            try:
                peer.call("load")
                peer.call("inputs", dir=folder)
                peers.append(peer)
            except PeerError as error:
                print(error, file=sys.stderr)
                peer.close()
        for _ in range(blocks):
            for peer in peers:
                time.sleep(0.05)
                samples = peer.call("run", warmup=2, iterations=iterations)["samples_ms"]
                medians.setdefault(peer.runtime, []).append(statistics.median(samples))
        for peer in peers:
            peer.close()
    return medians


def main():
    parser = argparse.ArgumentParser(description="Time models in the other runtimes, interleaved.")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--runtimes", default="onnxruntime,openvino")
    options = parser.parse_args()
    runtimes = options.runtimes.split(",")
    print(f"{'model':20}" + "".join(f"{r:>22}" for r in runtimes))
    for path in options.models:
        medians = measure(path, runtimes, options.threads, options.blocks, options.iterations)
        cells = [f"{min(m):.3f} / {statistics.median(m):.3f}" if (m := medians.get(r)) else "-" for r in runtimes]
        print(f"{os.path.splitext(os.path.basename(path))[0]:20}" + "".join(f"{c:>22}" for c in cells), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
