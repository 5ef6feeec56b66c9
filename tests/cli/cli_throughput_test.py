"""bench --streams: what it prints and writes has its form. Nothing is said of how fast anything is.

    python tests/cli/cli_throughput_test.py [CHECK...]

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import tiny_models
from workbench import Bench

NUMBER = r"\d+\.\d+"


def check_streams(bench):
    """Inferences a second of several streams, beside other runtimes in their modes of throughput."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, printed = bench.report("bench", name, "--streams", "2", "--threads", "2", "--duration", "0.3",
                                   "--compare", "onnxruntime,openvino")
    found = report["throughput"]
    assert (found["streams"], found["threads_per_stream"], report["env"]["threads"]) == (2, 1, 1), found
    assert found["per_second"]["count"] == 6 and found["per_second"]["median"] > 0, found
    assert found["latency_ms"]["count"] >= 12 and "latency_ms" not in report, found  # both streams in each of six turns
    assert set(found["peers"]) == {"onnxruntime", "openvino"}, found
    for runtime, peer in found["peers"].items():
        assert peer["version"].startswith(runtime) and peer["per_second"]["count"] == peer["speed_up"]["turns"] == 6, peer
        assert re.search(rf"^{runtime}\s+{NUMBER} inferences/s$", printed, re.MULTILINE), printed
        assert re.search(rf"^over {runtime} {NUMBER}x \(", printed, re.MULTILINE), printed
    assert re.search(rf"^collage\s+{NUMBER} inferences/s, 2 streams of 1 thread$", printed, re.MULTILINE), printed


def check_contexts(bench):
    """Streams are contexts of one program, unless kernels of it take turns: OpenVINO's. Then each has one, and a line says why."""
    name = bench.save("net.onnx", tiny_models.small_net())
    available = re.findall(r"^(\w+) +available", bench.run("targets"), re.MULTILINE)
    for target, programs in {"reference": 1, "native,reference": 1, "onednn,reference": 1, "openvino,reference": 2}.items():
        if target.split(",")[0] not in available:
            continue
        report, printed = bench.report("bench", name, "--streams", "2", "--threads", "2", "--duration", "0.1", "--targets", target, "-q")
        assert report["throughput"]["programs"] == programs, (target, report["throughput"])
        why = re.findall(r"^ +a program for each stream: (.*)$", printed, re.MULTILINE)
        assert len(why) == programs - 1 and all("(openvino): its kernels take turns" in line for line in why), (target, printed)


def check_more_streams_than_threads(bench):
    """Each stream has a thread at least."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, _ = bench.report("bench", name, "--streams", "3", "--threads", "1", "--duration", "0.1")
    assert report["throughput"]["threads_per_stream"] == 1 and report["throughput"]["peers"] == {}, report["throughput"]


CHECKS = (check_streams, check_contexts, check_more_streams_than_threads)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as shared:
        sys.exit(checks.run(CHECKS, sys.argv[1:], lambda folder: Bench(folder, os.path.join(shared, "cache"))))
