"""bench --streams, --batch and --benchmark-out: what they print and write has its form. Nothing is said of how fast anything is.

    python tests/cli/cli_throughput_test.py [CHECK...]

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import csv
import json
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import tiny_models
from cli_run_test import Bench

NUMBER = r"\d+\.\d+"


def check_streams(bench):
    """Inferences a second of several streams, beside other runtimes in their modes of throughput."""
    name = bench.save("net.onnx", tiny_models.small_net())
    report, printed = bench.report("bench", name, "--streams", "2", "--threads", "2", "--duration", "0.3",
                                   "--compare", "onnxruntime,openvino", "--benchmark-out", "out.json")
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
    with open(bench.path("out.json")) as file:
        names = [row["name"] for row in json.load(file)["benchmarks"]]
    assert names == [f"net/{runtime}/streams:2" for runtime in ("collage", "onnxruntime", "openvino")], names


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


def check_batches(bench):
    """A row a batch size and runtime; the report holds all sizes, and is of the last."""
    for name, model in {"named.onnx": tiny_models.small_net(batch="n"), "unnamed.onnx": tiny_models.small_net(batch=None)}.items():
        bench.save(name, model)
        report, printed = bench.report("bench", name, "--batch", "1,3", "--iterations", "4", "--compare", "onnxruntime",
                                       "--benchmark-out", "out.csv")
        assert [b["batch"] for b in report["batches"]] == [1, 3], report["batches"]
        for entry in report["batches"]:
            rate = 1e3 * entry["batch"] / entry["latency_ms"]["median"]
            assert abs(entry["per_second"] / rate - 1) < 1e-6, entry
        assert report["nodes"][0]["outputs"][0]["shape"][0] == 3, report["nodes"][0]
        heading, *rows = printed.splitlines()
        assert heading.split() == ["batch", "runtime", "median", "ms", "p10", "p90", "p95", "p99", "images/s"], heading
        wanted = [(batch, runtime) for batch in (1, 3) for runtime in ("collage", "onnxruntime")]
        assert [(int(row.split()[0]), row.split()[1]) for row in rows] == wanted, rows
        assert all(re.fullmatch(rf"\s+\d+  \w+(\s+{NUMBER}){{6}}", row) for row in rows), rows
        with open(bench.path("out.csv"), newline="") as file:
            written = list(csv.DictReader(file))
        stem = name.removesuffix(".onnx")
        assert [row["name"] for row in written] == [f"{stem}/{runtime}/batch:{batch}" for batch, runtime in wanted], written


def check_benchmark_json(bench):
    """The fields that readers of Google Benchmark's output look for."""
    name = bench.save("net.onnx", tiny_models.small_net())
    bench.run("bench", name, "--iterations", "4", "--benchmark-out", "out.json")
    with open(bench.path("out.json")) as file:
        found = json.load(file)
    assert {"date", "host_name", "executable", "num_cpus", "caches", "library_build_type"} <= set(found["context"]), found["context"]
    (row,) = found["benchmarks"]
    assert (row["name"], row["run_name"], row["run_type"], row["time_unit"]) == ("net/collage", "net/collage", "iteration", "ms"), row
    assert row["iterations"] >= 4 and row["real_time"] > 0 and row["cpu_time"] == 0 and row["peak_bytes"] > 0, row
    assert abs(row["items_per_second"] * row["real_time"] / 1e3 - 1) < 1e-6, row
    assert row["p10_ms"] <= row["real_time"] <= row["p90_ms"] <= row["p95_ms"] <= row["p99_ms"], row


CHECKS = (check_streams, check_contexts, check_more_streams_than_threads, check_batches, check_benchmark_json)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as shared:
        sys.exit(checks.run(CHECKS, sys.argv[1:], lambda folder: Bench(folder, os.path.join(shared, "cache"))))
