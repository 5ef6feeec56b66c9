"""What flags of outputs do to devices, pipes and links, and where a model's external data may lie.

    python tests/cli/cli_files_test.py [CHECK...]

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import json
import os
import stat
import sys
import threading

import numpy as np
import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import command
import tiny_models

REFERENCE = ("--targets", "reference", "--threads", "1")


class Folder:
    def __init__(self, folder):
        self.folder = folder
        onnx.save(tiny_models.relu_model(), self.path("net.onnx"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *arguments, status=0, **options):
        result = command.run(arguments, self.folder, cache=self.path("cache"), **options)
        assert result.returncode == status, f"exit status {result.returncode}: {result.stderr or result.stdout}"
        return result.stderr if status else result.stdout


def report_in(text):
    """The report in what the command printed, and what else it printed."""
    begin, end = text.index("{\n"), text.rindex("}\n") + 2
    return json.loads(text[begin:end]), text[:begin] + text[end:]


def check_standard_output(bench):
    """--json /dev/stdout writes there, between what the command prints, whether that is a pipe or a file."""
    report, rest = report_in(bench.run("run", "net.onnx", "--json", "/dev/stdout", *REFERENCE))
    assert report["model"] == "net.onnx" and "reference" in rest, rest
    os.symlink("/dev/stdout", bench.path("report.json"))
    with open(bench.path("log"), "w") as log:
        print("before", file=log, flush=True)
        bench.run("run", "net.onnx", "--json", "report.json", *REFERENCE, stdout=log)
    with open(bench.path("log")) as log:
        text = log.read()
    report, rest = report_in(text)
    assert rest.startswith("before\n") and "reference" in rest and report["model"] == "net.onnx", text
    assert os.path.islink(bench.path("report.json")) and os.path.islink("/dev/stdout")


def check_devices_and_pipes(bench):
    """A device stays one, and so does a pipe, whose reader gets the whole report."""
    if os.geteuid() == 0:  # who may not make one cannot replace one either
        os.mknod(bench.path("null"), 0o666 | stat.S_IFCHR, os.stat("/dev/null").st_rdev)
        bench.run("run", "net.onnx", "--json", "null", *REFERENCE)
        assert stat.S_ISCHR(os.lstat(bench.path("null")).st_mode)
    bench.run("run", "net.onnx", "--json", "/dev/null", *REFERENCE)
    assert stat.S_ISCHR(os.lstat("/dev/null").st_mode)
    os.mkfifo(bench.path("pipe.collage"))
    got = []

    def read():
        with open(bench.path("pipe.collage"), "rb") as pipe:
            got.append(pipe.read())

    reader = threading.Thread(target=read)
    reader.start()
    bench.run("compile", "net.onnx", "-o", "pipe.collage", *REFERENCE)
    reader.join()
    assert stat.S_ISFIFO(os.lstat(bench.path("pipe.collage")).st_mode)
    with open(bench.path("read.collage"), "wb") as file:
        file.write(got[0])
    bench.run("run", "read.collage")


def check_links(bench):
    """A link's target is replaced, whole, and not the link."""
    os.mkdir(bench.path("far"))
    for name, arguments in (("report.json", ("run", "net.onnx", "--json")), ("net.collage", ("compile", "net.onnx", "-o")),
                            ("page.html", ("view", "net.onnx", "-o")), ("costs.txt", ("db", "export"))):
        os.symlink(os.path.join("far", name), bench.path(name))
        bench.run(*arguments, name, *(() if arguments[0] == "db" else REFERENCE))
        assert os.path.islink(bench.path(name)), name
        assert os.path.getsize(bench.path(os.path.join("far", name))) > 0, name
    assert sorted(os.listdir(bench.path("far"))) == ["costs.txt", "net.collage", "page.html", "report.json"]
    os.symlink("loop.json", bench.path("loop.json"))
    assert "Too many levels" in bench.run("run", "net.onnx", "--json", "loop.json", *REFERENCE, status=2)


def check_nothing_is_left(bench):
    """A run that cannot write its result leaves what was there, and no other file."""
    os.mkdir(bench.path("out"))
    tiny_models.write(bench.folder, "out/report.json", "old")
    bench.run("run", "net.onnx", "--json", "out/report.json", "--inputs", "x=absent.npy", *REFERENCE, status=3)
    with open(bench.path("out/report.json")) as file:
        assert file.read() == "old"
    assert os.listdir(bench.path("out")) == ["report.json"]


def save_external(path, location):
    """A model with its weights under that name; gives the weights' bytes."""
    with open(path, "wb") as file:
        file.write(tiny_models.external_model(location).SerializeToString())
    return np.ones(4, np.float32).tobytes()


def check_cache_of_hugging_face(bench):
    """A model and its data as downloads lie in that cache: links from a snapshot to blobs. Links to elsewhere need --data-root."""
    model = bench.path("hub/models--org--name")
    snapshot = os.path.join(model, "snapshots", "0123456789abcdef", "onnx")
    os.makedirs(snapshot)
    os.makedirs(os.path.join(model, "blobs"))
    data = save_external(os.path.join(model, "blobs", "aaaa"), "model.onnx_data")
    os.makedirs(bench.path("elsewhere"))
    for place in (os.path.join(model, "blobs", "bbbb"), bench.path("elsewhere/bbbb")):
        with open(place, "wb") as file:
            file.write(data)
    os.link(os.path.join(model, "blobs", "bbbb"), os.path.join(model, "blobs", "cccc"))
    os.symlink("../../../blobs/aaaa", os.path.join(snapshot, "model.onnx"))
    link, found = os.path.join(snapshot, "model.onnx_data"), os.path.join(snapshot, "model.onnx")
    os.symlink("../../../blobs/bbbb", link)
    for name in (found, "linked.onnx"):
        if name == "linked.onnx":  # another name of the snapshot
            os.symlink(snapshot, bench.path("linked"))
            name = "linked/model.onnx"
        for verb in (("run",), ("verify",), ("inspect",), ("compile", "-o", "net.collage")):
            bench.run(verb[0], name, *verb[1:], *(("--targets", "reference") if verb[0] == "inspect" else REFERENCE))
    os.remove(link)
    os.symlink(bench.path("elsewhere/bbbb"), link)
    said = bench.run("run", found, *REFERENCE, status=3)
    assert f"external data 'model.onnx_data' is {bench.path('elsewhere/bbbb')}, outside the model's folder (--data-root DIR" in said, said
    bench.run("run", found, "--data-root", "elsewhere", *REFERENCE)
    bench.run("verify", found, "--data-root", "/usr", "--data-root", "elsewhere", *REFERENCE)
    assert "--data-root nowhere: No such file" in bench.run("run", found, "--data-root", "nowhere", *REFERENCE, status=2)


def check_data_of_several_shapes(bench):
    """The same of a model that is compiled for several shapes."""
    os.makedirs(bench.path("elsewhere"))
    os.makedirs(bench.path("model"))
    made = tiny_models.external_model("data")
    for info in (*made.graph.input, *made.graph.output):
        info.type.tensor_type.shape.dim[0].dim_param = "rows"
    with open(bench.path("model/net.onnx"), "wb") as file:
        file.write(made.SerializeToString())
    with open(bench.path("elsewhere/data"), "wb") as file:
        file.write(np.ones(4, np.float32).tobytes())
    os.symlink("../elsewhere/data", bench.path("model/data"))
    arguments = ("compile", "model/net.onnx", "-o", "net.collage", "--bucket", "rows=1,4", *REFERENCE)
    assert "outside the model's folder" in bench.run(*arguments, status=3)
    bench.run(*arguments, "--data-root", "elsewhere")
    bench.run("run", "net.collage")


CHECKS = (check_standard_output, check_devices_and_pipes, check_links, check_nothing_is_left, check_cache_of_hugging_face,
          check_data_of_several_shapes)

if __name__ == "__main__":
    sys.exit(checks.run(CHECKS, sys.argv[1:], Folder))
