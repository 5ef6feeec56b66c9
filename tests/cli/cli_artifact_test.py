"""compile writes an artifact that run, bench, verify, explain and view take like a model; damaged and foreign ones are refused.

    python tests/cli/cli_artifact_test.py [CHECK...]

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import json
import os
import shutil
import sys
import zipfile

import numpy as np
import onnx
from onnx import helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import command
import schema
import tiny_models

with open(os.path.join(HERE, "..", "..", "docs", "report-schema.json")) as file:
    REPORT_SCHEMA = json.load(file)
COMPILE = ("--targets", "onednn", "--threads", "2")


class Folder:
    """A folder with a model and its artifact."""

    def __init__(self, folder):
        self.folder = folder
        onnx.save(tiny_models.small_net(), self.path("net.onnx"))
        self.run("compile", "net.onnx", "-o", "net.collage", *COMPILE)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *arguments, status=0, cache="cache"):
        result = command.run(arguments, self.folder, cache=self.path(cache))
        assert result.returncode == status, f"exit status {result.returncode}: {result.stderr or result.stdout}"
        assert result.stderr.count("\n") == (1 if status else 0), result.stderr
        return result.stderr if status else result.stdout


def saved(bench, *arguments):
    shutil.rmtree(bench.path("out"), ignore_errors=True)
    bench.run(*arguments, "--save-outputs", "out")
    return np.load(bench.path("out/0_scores.npy")).tobytes()


def check_run(bench):
    """The same bits as the program it was saved from, without a cache, on inputs given and on those that are drawn."""
    np.save(bench.path("given.npy"), np.random.default_rng(7).standard_normal((1, 3, 12, 12), np.float32))
    for given in ((), ("--inputs", "image=given.npy")):
        expected = saved(bench, "run", "net.onnx", *given, *COMPILE)
        assert saved(bench, "run", "net.collage", *given) == expected
        assert saved(bench, "run", "net.collage", "--for", "this", *given, *COMPILE) == expected
    bench.run("run", "net.collage", cache="another")
    assert not os.path.exists(bench.path("another")), "running an artifact made a cache"


def check_others(bench):
    """verify, bench, explain and view."""
    said = bench.run("verify", "net.collage", "--json", "checked.json")
    assert "verified against the reference interpreter" in said
    with open(bench.path("checked.json")) as file:
        report = json.load(file)
    assert report["verification"]["within"] and not (wrong := schema.problems(report, REPORT_SCHEMA)), report["verification"]
    assert " runs\n" in bench.run("bench", "net.collage", "--duration", "0.1", "--json", "report.json")
    with open(bench.path("report.json")) as file:
        report = json.load(file)
    assert not (wrong := schema.problems(report, REPORT_SCHEMA)), wrong
    assert report["latency_ms"]["count"] > 0 and report["model"] == "net.onnx"
    figures = report["artifact"]
    assert figures["bytes"] == os.path.getsize(bench.path("net.collage"))
    assert 0 < figures["map_ms"] + figures["check_ms"] < figures["load_ms"] and figures["packed_bytes"] > 0, figures
    assert "onednn" in bench.run("explain", "net.collage")
    bench.run("view", "net.collage", "-o", "plan.html")
    assert os.path.getsize(bench.path("plan.html")) > 10000


def check_compile(bench):
    """What compile saved of a run is what the file gives, for the same inputs."""
    x = np.random.default_rng(1).standard_normal((1, 3, 12, 12)).astype("float32")
    np.save(bench.path("x.npy"), x)
    name = onnx.load(bench.path("net.onnx")).graph.input[0].name
    inputs = ("--inputs", f"{name}=x.npy")
    expected = saved(bench, "compile", "net.onnx", "-o", "again.collage", *inputs, *COMPILE)
    assert saved(bench, "run", "again.collage", *inputs) == expected


def check_half_precision(bench):
    """A float16 model's artifact is held to the model's own arithmetic, as the model is, and so is what --for this makes of it."""
    onnx.save(tiny_models.in_float16(tiny_models.small_net(filters=32)), bench.path("half.onnx"))
    expected = saved(bench, "compile", "half.onnx", "-o", "half.collage", *COMPILE)
    assert saved(bench, "run", "half.collage") == expected and len(expected) == 10 * 2
    for flags in ((), ("--for", "this", *COMPILE)):
        said = bench.run("verify", "half.collage", *flags)
        assert "(|a-b| <= 0.01 s, as the model rounds to float16)" in said, said


def check_several_shapes(bench):
    """A file for two sizes of a dimension: inputs are padded to the next, results cut back; other sub-commands say that run alone takes it."""
    onnx.save(tiny_models.relu_model(("batch", 3)), bench.path("relu.onnx"))
    said = bench.run("compile", "relu.onnx", "-o", "relu.collage", "--bucket", "batch=4,16", *COMPILE)
    assert "2 specialisations" in said, said
    timed = bench.run("run", "relu.collage").splitlines()
    assert [line.split("ms")[1].split("  ")[1] for line in timed] == ["x (4, 3)", "x (16, 3)"], timed
    for rows in (3, 4, 9):
        x = np.random.default_rng(rows).standard_normal((rows, 3)).astype("float32")
        np.save(bench.path("x.npy"), x)
        bench.run("run", "relu.collage", "--inputs", "x=x.npy", "--save-outputs", f"out{rows}")
        np.testing.assert_array_equal(np.load(bench.path(f"out{rows}/0_y.npy")), np.maximum(x, 0))
    np.save(bench.path("x.npy"), np.zeros((17, 3), np.float32))
    assert "dimension 'batch' is 17, larger than every bucket" in bench.run("run", "relu.collage", "--inputs", "x=x.npy", status=3)
    for flags, why in ((("--targets", "native"), "is compiled already"), (("--dim", "batch=3"), "is compiled already"),
                       (("--inputs", "z=x.npy"), "no such input")):
        assert why in (said := bench.run("run", "relu.collage", *flags, status=2)), said
    for verb in ("bench", "verify", "explain"):
        assert "which `collage run` alone takes" in bench.run(verb, "relu.collage", status=2)
    for flags, why in ((("--bucket", "rows=4"), "buckets for 'rows', which is no dimension"), (("--bucket", "batch=0"), "at least 1"),
                       (("--bucket", "batch=4", "--state", "z=y"), "no such input"), (("--state", "x=y"), "--state needs --bucket"),
                       (("--bucket", "batch=4", "--emit", "library"), "ends in .a"), (("--bucket", "batch=x"), "'x' is not a dimension")):
        assert why in (said := bench.run("compile", "relu.onnx", "-o", "no.collage", *flags, *COMPILE, status=2)), said
    assert not os.path.exists(bench.path("no.collage"))


def check_stages(bench):
    """A file of a model that runs in stages, whose weights lie in another file: for the shapes that it was compiled for, and others."""
    net = tiny_models.places_model()
    net.graph.node.insert(0, helper.make_node("Add", ["given", "w"], ["x"]))
    net.graph.input[0].name = "given"
    net.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((2, 3), np.float32), "w"))
    os.mkdir(bench.path("places"))
    onnx.save(net, bench.path("places/net.onnx"), save_as_external_data=True, location="weights", size_threshold=0)
    compiled = "compile", "places/net.onnx", "-o", "places.collage", "--targets", "native", "--threads", "2"
    assert "holds the model too" in bench.run(*compiled)
    shutil.rmtree(bench.path("places"))
    for x in ([[1, -1, 0], [-1, 2, 3]], [[-1, -1, -1], [-1, -1, 0]]):
        np.save(bench.path("x.npy"), np.array(x, np.float32))
        bench.run("run", "places.collage", "--inputs", "given=x.npy", "--save-outputs", "places")
        np.testing.assert_array_equal(np.load(bench.path("places/0_found.npy")), [v + 1 for row in x for v in row if v != -1])
    assert "verified against the reference" in bench.run("verify", "places.collage", "--inputs", "given=x.npy")
    assert "runs in stages" in bench.run("bench", "places.collage", "--duration", "0.1")
    assert "is compiled already" in bench.run("run", "places.collage", "--targets", "native", status=2)
    assert "which collage run, bench and verify take" in bench.run("explain", "places.collage", status=2)


def check_file(bench):
    """An archive of stored entries on pages, with names that say what they are."""
    with zipfile.ZipFile(bench.path("net.collage")) as archive:
        assert archive.testzip() is None
        entries = archive.infolist()
        names = [entry.filename for entry in entries]
        assert {"plan.json", "weights", "module.json", "module.weights", "report.json"} < set(names), names
        assert names[-1] == "manifest.json" and all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
        manifest = json.loads(archive.read("manifest.json"))
    assert [entry["name"] for entry in manifest["entries"]] == names[:-1]
    assert all(entry["offset"] % 4096 == 0 for entry in manifest["entries"]) and manifest["threads"] == 2


def check_refusals(bench):
    """Damaged files, other flags than it was compiled with."""
    with open(bench.path("net.collage"), "rb") as file:
        whole = file.read()
    for name, content in (("short", whole[:-100]), ("empty", b""), ("text", b"no artifact" * 50),
                          ("changed", whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])):
        with open(bench.path(name + ".collage"), "wb") as file:
            file.write(content)
        said = bench.run("run", name + ".collage", status=3)
        assert said.startswith(f"collage: {name}.collage: "), said
    with zipfile.ZipFile(bench.path("net.collage")) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    (unread,) = [entry for entry in manifest["entries"] if entry["name"] == "module.weights"]
    with open(bench.path("unread.collage"), "wb") as file:
        file.write(whole[:unread["offset"]] + bytes([whole[unread["offset"]] ^ 1]) + whole[unread["offset"] + 1:])
    bench.run("run", "unread.collage")
    assert "entry 'module.weights' is damaged" in bench.run("verify", "unread.collage", status=3)
    assert "--layerwise wants --for this" in bench.run("verify", "net.collage", "--layerwise", status=2)
    for threads in ("1", "3"):
        assert f", {threads} threads" in bench.run("run", "net.collage", "--threads", threads)
    assert "is compiled already" in bench.run("run", "net.collage", "--targets", "native", status=2)
    assert "ends in .collage" in bench.run("compile", "net.onnx", "-o", "net.bin", status=2)
    assert "is compiled already" in bench.run("compile", "net.collage", "-o", "again.collage", status=2)
    assert "--for this" in bench.run("bench", "net.collage", "--layers", status=2)
    assert "wants the model's own file" in bench.run("bench", "net.collage", "--for", "this", "--compare", "onnxruntime", status=2)
    for flags in (("--shapes", "image=1x3x12x12"), ("--dim", "batch=1")):
        assert "cannot be given" in bench.run("run", "net.collage", "--for", "this", *flags, status=2)
    bench.run("run", "absent.collage", status=2)


CHECKS = (check_run, check_others, check_compile, check_half_precision, check_several_shapes, check_stages, check_file, check_refusals)

if __name__ == "__main__":
    sys.exit(checks.run(CHECKS, sys.argv[1:], Folder))
