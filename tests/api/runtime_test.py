"""A C program on libcollage_runtime runs artifacts: it links no compiler, starts no process and writes no file.

    python tests/api/runtime_test.py

Takes the build that COLLAGE_BIN lies in (default build/release). Prints "N passed, N failed" or what went wrong.
"""

import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests", "cli"), os.path.join(ROOT, "tests", "python")]

import onnx

import built_package
import checks
import command
import tiny_models

BUILD = os.path.dirname(command.COLLAGE)
NO_COMPILER = r"Halide|protobuf|Clp|Cbc|CoinUtils|sqlite|openvino|dnnl|openblas|libcollage\.so"


def call(*arguments, **options):
    result = subprocess.run(arguments, capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
    assert result.returncode == 0, f"{arguments} gave {result.returncode}:\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
    return result.stdout


class Program:
    """The compiled C program, and artifacts of one model."""

    def __init__(self, folder):
        self.folder = folder
        self.binary = os.path.join(folder, "program")
        self.build("runtime_test.c", self.binary)
        onnx.save(tiny_models.small_net(), os.path.join(folder, "net.onnx"))

    def build(self, source, binary):
        call("cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", os.path.join(HERE, source), "-o", binary,
             "-I", os.path.join(ROOT, "include"), "-L", BUILD, f"-Wl,-rpath,{os.path.abspath(BUILD)}", "-lcollage_runtime")

    def compile(self, model, name, *flags):
        result = command.run(["compile", model, "-o", name, "--threads", "2", *flags], self.folder,
                             cache=os.path.join(self.folder, "cache"))
        assert result.returncode == 0, result.stderr
        return name

    def artifact(self, *targets):
        return self.compile("net.onnx", "_".join(targets) + ".collage", "--targets", ",".join(targets))


def backends():
    """The toolchains of this build that can run here."""
    listed = command.run(["targets"], ".", cache="/nonexistent").stdout
    return [name for name in ("onednn", "native", "openvino", "blas", "reference") if re.search(rf"^{name} +available", listed, re.M)]


def check_runs(program):
    """The same result with the kernels of every toolchain, each from its own library."""
    values = {}
    for name in backends():
        values[name] = float(call(program.binary, program.artifact(name), cwd=program.folder))
    assert len(values) > 1 and max(values.values()) - min(values.values()) < 1e-4, values


def check_openmp_calls(program):
    """What the libraries call of OpenMP is led to the process's teams; one name too many, and none of a library's calls is."""
    with open(os.path.join(ROOT, "src", "runtime", "openmp_calls.cc")) as file:
        led = set(re.findall(r'\{"((?:GOMP|omp)_\w+)"', file.read()))
    libraries = [name for name in os.listdir(BUILD) if re.fullmatch(r"libcollage\w*\.so", name)]
    assert "libcollage_runtime.so" in libraries and len(libraries) > 3, libraries
    for name in libraries:
        wanted = set(re.findall(r" U ((?:GOMP|omp)_\w+)", call("nm", "-D", "--undefined-only", os.path.join(BUILD, name))))
        assert wanted <= led, f"{name}: {wanted - led}"


def check_links_no_compiler(program):
    needed = call("ldd", program.binary)
    assert "libcollage_runtime" in needed and not re.search(NO_COMPILER, needed), needed


def check_touches_nothing(program):
    """No process started, no file written, no library but those of its kernels."""
    if shutil.which("strace") is None:
        return
    name = program.artifact("native" if "native" in backends() else "reference")
    log = os.path.join(program.folder, "trace")
    call("strace", "-f", "-o", log, "-e", "trace=openat,open,creat,execve,fork,vfork,unlink,rename,mkdir", program.binary, name,
         cwd=program.folder)
    with open(log) as file:
        lines = file.read().splitlines()
    started = [line for line in lines if "execve(" in line]
    assert len(started) == 1 and not any(re.search(r" v?fork\(", line) for line in lines), started
    written = [line for line in lines if re.search(r"O_WRONLY|O_RDWR|O_CREAT|creat\(|unlink\(|rename\(|mkdir\(", line)]
    assert not written, written
    loaded = [line for line in lines if re.search(NO_COMPILER, line) and "= -1" not in line]
    assert not loaded, loaded


def check_several_shapes(program):
    """A program of several shapes, by the same functions."""
    binary = os.path.join(program.folder, "shapes")
    program.build("runtime_shapes_test.c", binary)
    onnx.save(tiny_models.relu_model(("batch", 3)), os.path.join(program.folder, "relu.onnx"))
    call(binary, program.compile("relu.onnx", "relu.collage", "--bucket", "batch=4,16", "--targets", "reference"), cwd=program.folder)


def check_control_flow(program):
    """A recurrence of 40 steps and a condition behind the network, as plans inside the program's: what ONNX Runtime gives."""
    import numpy
    import onnxruntime

    value, node, kinds = onnx.helper.make_tensor_value_info, onnx.helper.make_node, onnx.TensorProto
    constant = lambda name, array: onnx.numpy_helper.from_array(numpy.array(array), name)
    vector = lambda name: value(name, kinds.FLOAT, [1, 10])
    body = onnx.helper.make_graph(
        [node("Mul", ["s", "most"], ["t"]), node("Sub", ["t", "e"], ["u"]), node("Tanh", ["u"], ["next"]), node("Identity", ["go"], ["on"])], "body",
        [value("i", kinds.INT64, []), value("go", kinds.BOOL, []), vector("s")], [value("on", kinds.BOOL, []), vector("next")], [constant("most", numpy.float32(0.9))])
    branch = lambda operator: onnx.helper.make_graph([node(operator, ["last"], ["r"])], operator, [], [vector("r")])
    made = tiny_models.small_net()
    softmax = made.graph.node.pop()
    made.graph.node.extend([node("Loop", ["trips", "", "e"], ["last"], body=body), node("ReduceMax", ["last"], ["top"], keepdims=0), node("Less", ["top", "half"], ["low"]),
                            node("If", ["low"], ["chosen"], then_branch=branch("Exp"), else_branch=branch("Neg")), node("Softmax", ["chosen"], list(softmax.output), axis=1)])
    made.graph.initializer.extend([constant("trips", numpy.int64(40)), constant("half", numpy.float32(0.5))])
    onnx.save(made, os.path.join(program.folder, "control.onnx"))
    image = numpy.array([[(c * 31 + i * 7) % 17 for i in range(144)] for c in range(3)], numpy.float32).reshape(1, 3, 12, 12) / 17
    expected = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"image": image})[0][0, 0]
    for name in backends():
        given = float(call(program.binary, program.compile("control.onnx", f"control_{name}.collage", "--targets", name), cwd=program.folder))
        assert abs(given - expected) < 1e-4, f"{name}: {given}, not {expected}"


def check_external_modules(program):
    """Kernels that passes compiled and attached to a module's text, each from its own library."""
    if not built_package.BUILT:
        return
    from collage import load, passes

    expected = float(call(program.binary, program.artifact("reference"), cwd=program.folder))
    for name in backends():
        if name == "reference":
            continue
        model = passes.Pipeline([passes.partition_for(name), passes.codegen(name, threads=1)])(load(os.path.join(program.folder, "net.onnx")))
        assert {module.target for module in model.external_mods} == {name}
        model.compile(targets="reference", threads=2, database=os.path.join(program.folder, "costs.db")).save(os.path.join(program.folder, f"attached_{name}.collage"))
        given = float(call(program.binary, f"attached_{name}.collage", cwd=program.folder))
        assert abs(given - expected) < 1e-4, f"{name}: {given}, not {expected}"


def check_random_numbers(program):
    """Every run draws others, every context the same sequence."""
    binary = os.path.join(program.folder, "random")
    program.build("runtime_random_test.c", binary)
    nodes = [onnx.helper.make_node("RandomNormalLike", ["x"], ["noise"], "noise"), onnx.helper.make_node("Add", ["x", "noise"], ["y"], "sum")]
    onnx.save(tiny_models.model(nodes, {"x": [4]}, {"y": [4]}), os.path.join(program.folder, "noise.onnx"))
    call(binary, program.compile("noise.onnx", "noise.collage", "--targets", "reference"), cwd=program.folder)


if __name__ == "__main__":
    sys.exit(checks.run([check_runs, check_control_flow, check_external_modules, check_several_shapes, check_random_numbers, check_openmp_calls, check_links_no_compiler, check_touches_nothing], sys.argv[1:], Program))
