"""compile --emit library: a C program on nothing but the library gives the bits that the program gives which was compiled.

    python tests/cli/cli_library_test.py [CHECK...]

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import os
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import helper

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import command
import tiny_models

BUILD = os.path.dirname(os.path.abspath(command.COLLAGE))  # libcollage_runtime is there
FLAGS = ("--threads", "2")
FUNCTIONS = {"create", "run", "free", "error", "input", "output"}
PROGRAM = """#[version = "0.0.5"]
program @twice {
  param A: float32[3, 40];
  result C[i:3, j:40] = A[i, j] * 2.0f;
}
def @main(%x: Tensor[(3, 40), float32]) {
  nn.relu(@twice(%x))
}
"""

JOINED = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 8), float32], %y: Tensor[(3, 8), float32]) {
  %0 = fn (%p: Tensor[(2, 8), float32], Primitive=1, Target="native") { nn.relu(%p) };
  %1 = fn (%p: Tensor[(3, 8), float32], Primitive=1, Target="native") { tanh(%p) };
  %2 = fn (%p: Tensor[(2, 8), float32], %q: Tensor[(3, 8), float32], Primitive=1, Target="memory") { concatenate((%p, %q), axis=0) };
  %3 = fn (%p: Tensor[(5, 8), float32], Primitive=1, Target="native") { multiply(%p, %p) };
  %4 = %0(%x);
  %5 = %1(%y);
  %6 = %2(%4, %5);
  %3(%6)
}
"""


def call(*arguments, **options):
    result = subprocess.run(arguments, capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
    assert result.returncode == 0, f"{arguments} gave {result.returncode}:\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
    return result.stdout


def parted():
    """Joins, cuts, a product of what was computed, two inputs, three outputs, one of which is an input and one a weight's sum."""
    node = helper.make_node
    nodes = [node("Conv", ["x", "w"], ["a"], "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("Relu", ["a"], ["b"], "relu"),
             node("Split", ["b", "halves"], ["c", "d"], "split", axis=1), node("Concat", ["d", "x", "c"], ["e"], "concat", axis=1),
             node("Conv", ["e", "v"], ["f"], "other", kernel_shape=[1, 1]), node("Flatten", ["f"], ["g"], "flat"),
             node("MatMul", ["g", "m"], ["h"], "product"), node("Tanh", ["h"], ["i"], "tanh"), node("Gelu", ["i"], ["y"], "gelu"),
             node("Identity", ["x"], ["same"], "identity"), node("ReduceSum", ["f"], ["*/ \"total\\\n??/"], "sum", keepdims=0)]
    weights = {"w": tiny_models.weights(16, 8, 3, 3), "v": tiny_models.weights(6, 24, 1, 1, seed=1), "halves": np.array([5, 11])}
    return tiny_models.model(nodes, {"x": [2, 8, 7, 9], "m": [6 * 7 * 9, 33]},
                             {"y": [2, 33], "same": [2, 8, 7, 9], "*/ \"total\\\n??/": []}, weights, opset=20)


class Folder:
    def __init__(self, folder):
        self.folder = folder

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run(self, *arguments, status=0, **environment):
        result = command.run(arguments, self.folder, cache=self.path("cache"), **environment)
        assert result.returncode == status, f"exit status {result.returncode}: {result.stderr or result.stdout}"
        assert result.stderr.count("\n") == (1 if status else 0), result.stderr
        return result.stderr if status else result.stdout

    def saved(self, *arguments):
        """The bytes of each output."""
        shutil.rmtree(self.path("out"), ignore_errors=True)
        self.run(*arguments, "--save-outputs", "out")
        names = sorted(os.listdir(self.path("out")), key=lambda name: int(name.split("_")[0]))
        return [np.load(self.path("out", name)).tobytes() for name in names]

    def given(self, arrays):
        """The flags that give these inputs, which the C program finds as files."""
        flags = []
        for i, (name, array) in enumerate(arrays.items()):
            np.save(self.path(f"{i}.npy"), array)
            array.tofile(self.path(f"input{i}"))
            flags += ["--inputs", f"{name}={i}.npy"]
        return flags

    def outputs(self, library, name, count, more=()):
        """What the C program writes, and what it says."""
        flags = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-DNAME={name}", f'-DHEADER="{name}.h"', "-I", "."]
        call("cc", *flags, os.path.join(HERE, "library_test.c"), os.path.join(".", library), "-o", "program", "-lm", "-pthread",
             *more, cwd=self.folder)
        said = call("./program", cwd=self.folder, env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": f"{self.folder}:{BUILD}"})
        found = []
        for i in range(count):
            with open(self.path(f"output{i}"), "rb") as file:
                found.append(file.read())
        return found, said


def same_bits(folder, model, arrays):
    """Of the library, static and shared, of the program that was compiled, of another run, and of an artifact."""
    inputs = folder.given(arrays)
    expected = folder.saved("run", model, "--targets", "native", *inputs, *FLAGS)
    for library in ("libnet.a", "libnet.so"):
        assert folder.saved("compile", model, "--emit", "library", "-o", library, *inputs, *FLAGS) == expected
        found, _ = folder.outputs(library, "net", len(expected))
        assert found == expected, f"{library}: other bits"
    folder.run("compile", model, "-o", "net.collage", "--targets", "native", *FLAGS)
    assert folder.saved("compile", "net.collage", "--emit", "library", "-o", "librenewed.a", *inputs) == expected
    assert folder.outputs("librenewed.a", "renewed", len(expected))[0] == expected
    left = [name for name in os.listdir(folder.folder) if name.startswith(".collage")]
    assert not left, left


def random_net():
    nodes = [helper.make_node("RandomNormalLike", ["x"], ["noise"], "noise"), helper.make_node("Add", ["x", "noise"], ["y"], "sum")]
    return tiny_models.model(nodes, {"x": [4]}, {"y": [4]})


def random(*shape, dtype=np.float32):
    return np.random.default_rng(3).standard_normal(shape).astype(dtype)


def check_net(folder):
    onnx.save(tiny_models.small_net(), folder.path("net.onnx"))
    same_bits(folder, "net.onnx", {"image": random(1, 3, 12, 12)})
    defined = call("nm", "-D", "--defined-only", "libnet.so", cwd=folder.folder).split()
    assert {word for word in defined if len(word) > 1 and not re.fullmatch("[0-9a-f]{16}", word)} == {f"net_{f}" for f in FUNCTIONS}, defined
    defined = call("nm", "--extern-only", "--defined-only", "libnet.a", cwd=folder.folder)
    assert set(re.findall(r" [A-Z] (\w+)", defined)) == {f"net_{f}" for f in FUNCTIONS}, defined
    needed = call("readelf", "-dlW", "libnet.so", cwd=folder.folder)
    assert set(re.findall(r"NEEDED\)\s+Shared library: \[(\w+)", needed)) <= {"libc", "libm", "libpthread", "ld"}, needed
    assert "RWE" not in needed and "TEXTREL" not in needed, needed
    with open(folder.path("net.h")) as file:
        header = file.read()
    for line in ("of net.onnx, for 2 threads", "inputs[0]  image  float32 (1, 3, 12, 12)  1728 bytes", "outputs[0]  scores  float32 (1, 10)"):
        assert line in header, header


def check_parts(folder):
    """Several tensors, copies, names that C does not like."""
    onnx.save(parted(), folder.path("parted.onnx"))
    same_bits(folder, "parted.onnx", {"x": random(2, 8, 7, 9), "m": random(6 * 7 * 9, 33)})
    for language, compiler in (("c", "cc"), ("c++", "c++")):
        call(compiler, "-x", language, "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "net.h", cwd=folder.folder)


def check_copies(folder):
    """Kernels of the backend `memory` may be part of a library."""
    onnx.save(parted(), folder.path("parted.onnx"))
    inputs = folder.given({"x": random(2, 8, 7, 9), "m": random(6 * 7 * 9, 33)})
    expected = folder.saved("compile", "parted.onnx", "--emit", "library", "-o", "libparts.a", "--targets", "native,memory", "--effort", "fast",
                            *inputs, *FLAGS)
    assert folder.outputs("libparts.a", "parts", len(expected))[0] == expected


def check_joined(folder):
    """What is computed at its place in a joined tensor lies there in a library too."""
    tiny_models.write(folder.folder, "joined.relay", JOINED)
    x, y = random(2, 8), random(3, 8)
    folder.run("compile", "joined.relay", "--emit", "library", "-o", "libjoined.a", "--targets", "native,memory", "--effort", "fast",
               *folder.given({"x": x, "y": y}), *FLAGS)
    found, _ = folder.outputs("libjoined.a", "joined", 1)
    joined = np.concatenate([np.maximum(x, 0), np.tanh(y)])
    assert np.allclose(np.frombuffer(found[0], np.float32).reshape(5, 8), joined * joined, atol=1e-6), found


def check_constants(folder):
    """Constants of one size are told apart by what they hold."""
    nodes = [helper.make_node("Mul", ["x", "a"], ["ax"]), helper.make_node("Add", ["ax", "b"], ["y"])]
    constants = {"a": random(64), "b": -random(64)}
    onnx.save(tiny_models.model(nodes, {"x": [2, 64]}, {"y": [2, 64]}, constants), folder.path("constants.onnx"))
    x = random(2, 64)
    same_bits(folder, "constants.onnx", {"x": x})
    found, _ = folder.outputs("libnet.a", "net", 1)
    assert np.allclose(np.frombuffer(found[0], np.float32).reshape(2, 64), x * constants["a"] + constants["b"], atol=1e-6), found


def check_ends(folder):
    """Boxes as detectors decode them: what overflows is clipped."""
    nodes = [helper.make_node("Exp", ["x"], ["e"], "exp"), helper.make_node("Mul", ["e", "scale"], ["s"], "scaled"),
             helper.make_node("Clip", ["s", "low", "high"], ["y"], "clip")]
    constants = {"scale": np.float32(16), "low": np.float32(0), "high": np.float32(640)}
    x = np.float32([[90, 88.5, np.inf, -np.inf, 1, 88.3, 0, 3.5, 88.9, 1e30, -90]])
    onnx.save(tiny_models.model(nodes, {"x": list(x.shape)}, {"y": list(x.shape)}, constants), folder.path("ends.onnx"))
    same_bits(folder, "ends.onnx", {"x": x})
    found, _ = folder.outputs("libnet.a", "net", 1)
    with np.errstate(over="ignore"):
        assert np.allclose(np.frombuffer(found[0], np.float32), np.clip(np.exp(x[0].astype(np.float64)) * 16, 0, 640)), found


def check_indices(folder):
    """Rows of a table by indices that the caller gives; one that is out of range is an error."""
    nodes = [helper.make_node("Gather", ["table", "i"], ["rows"], "rows"), helper.make_node("Relu", ["rows"], ["y"], "relu")]
    model = tiny_models.model(nodes, {"i": [2, 3]}, {"y": [2, 3, 8]}, {"table": tiny_models.weights(5, 8)})
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    onnx.save(model, folder.path("rows.onnx"))
    same_bits(folder, "rows.onnx", {"i": np.array([[0, 4, -5], [3, -1, 2]])})
    np.array([[0, 1, 2], [3, 4, 5]]).tofile(folder.path("input0"))
    result = subprocess.run(["./program"], cwd=folder.folder, capture_output=True, text=True)
    assert result.returncode == 1 and result.stderr == "run: index 5 is out of range for extent 5\n", result


def check_backends(folder):
    """Kernels of other backends are run by libcollage_runtime, which the library then needs."""
    runtime = (f"-L{BUILD}", "-lcollage_runtime")
    available = command.run(["targets"], folder.folder, cache=folder.path("cache")).stdout
    onnx.save(tiny_models.small_net(), folder.path("net.onnx"))
    onnx.save(random_net(), folder.path("random.onnx"))
    product = tiny_models.model([helper.make_node("MatMul", ["x", "w"], ["y"], "product")], {"x": [64, 64]}, {"y": [64, 48]},
                                {"w": tiny_models.weights(64, 48)})
    onnx.save(product, folder.path("product.onnx"))
    inputs = {"net": {"image": random(1, 3, 12, 12)}, "product": {"x": random(64, 64)}, "random": {"x": random(4)}}
    for target, model in (("onednn", "net"), ("openvino", "net"), ("amx", "product"), ("blas", "product"), ("native", "random")):
        if not re.search(f"^{target} +available", available, re.M):
            continue
        given = folder.given(inputs[model])
        expected = folder.saved("compile", model + ".onnx", "--targets", target, "--effort", "fast", "-q", "-o", f"{model}.collage",
                                *given, *FLAGS)
        for library in (f"lib{model}.a", f"lib{model}.so"):
            said = folder.run("compile", f"{model}.collage", "--emit", "library", "-o", library)
            assert re.search(rf"^{library} needs libcollage_runtime\.so\.0, since .* runs on ", said, re.M), (target, said)
            if model != "random":  # each run draws numbers of its own
                assert folder.outputs(library, model, len(expected), runtime)[0] == expected, (target, library)
        defined = call("nm", "--extern-only", "--defined-only", f"lib{model}.a", cwd=folder.folder)
        assert set(re.findall(r" [A-Z] (\w+)", defined)) == {f"{model}_{f}" for f in FUNCTIONS}, defined


def check_halves(folder):
    onnx.save(tiny_models.in_float16(tiny_models.small_net()), folder.path("half.onnx"))
    same_bits(folder, "half.onnx", {"image": random(1, 3, 12, 12, dtype=np.float16)})


def check_program(folder):
    """A tensor program of the user's, whose code checks its arguments."""
    tiny_models.write(folder.folder, "program.relay", PROGRAM)
    same_bits(folder, "program.relay", {"x": random(3, 40)})


def check_two(folder):
    """Libraries do not meet: two in one program, names that are no identifiers."""
    for seed, library in ((0, "lib3-d.a"), (5, "libother.a")):
        onnx.save(tiny_models.small_net(seed=seed), folder.path("net.onnx"))
        folder.run("compile", "net.onnx", "--emit", "library", "-o", library, *FLAGS)
    tiny_models.write(folder.folder, "two.c", """
        #include "model_3_d.h"
        #include "other.h"
        #include <stdio.h>
        int main(void) {
          float image[3 * 12 * 12] = {0}, scores[10];
          const void* in[] = {image};
          void* out[] = {scores};
          model_3_d_context* a = model_3_d_create(0);
          other_context* b = other_create(0);
          if (model_3_d_run(a, in, out) != 0) return 1;
          printf("%.9g", scores[0]);
          if (other_run(b, in, out) != 0) return 1;
          printf(" %.9g", scores[0]);
          model_3_d_free(a);
          other_free(b);
          return 0;
        }""")
    call("cc", "-Wall", "-Werror", "two.c", "lib3-d.a", "libother.a", "-o", "two", "-lm", "-pthread", cwd=folder.folder)
    first, second = call("./two", cwd=folder.folder).split()
    assert first != second, first


def check_refusals(folder):
    onnx.save(tiny_models.small_net(), folder.path("net.onnx"))
    before = set(os.listdir(folder.folder))
    library = ("compile", "net.onnx", "--emit", "library", "-o", "libnet.a")
    assert "needs `nocc`" in folder.run(*library, status=5, CC="nocc")
    said = folder.run(*library, *FLAGS, status=1, CC="cc -include absent.h")
    assert "`cc` failed" in said and "absent.h" in said, said
    assert set(os.listdir(folder.folder)) - before <= {"cache"}, os.listdir(folder.folder)


def check_hooks(_):
    """Whatever a compiled kernel may call, the library has: but for external functions, whose kernels it does not take."""
    def text(*path):
        with open(os.path.join(command.ROOT, "src", *path)) as file:
            return file.read()
    errors = text("backend", "native", "kernels", "runtime_errors.cc")
    wanted = set(re.findall(r'\{"(halide_\w+[a-z])"', text("backend", "native", "kernels", "runtime_hooks.cc") + errors))
    wanted |= {f"halide_error_{name}" for name in re.findall(r"^  COLLAGE_KERNEL_ERROR\((\w+)\)$", errors, re.M)}
    runtime = text("artifact", "library", "library_runtime.c")
    has = set(re.findall(r"^[\w ]+\*? (halide_\w+)\(", runtime, re.M)) | {f"halide_error_{name}" for name in re.findall(r"^ASSERTION\((\w+)\)$", runtime, re.M)}
    assert len(wanted) > 30 and wanted == has, wanted ^ has


CHECKS = (check_net, check_parts, check_copies, check_joined, check_constants, check_ends, check_indices, check_halves, check_program, check_backends, check_two, check_refusals, check_hooks)

if __name__ == "__main__":
    listed = command.run(["targets"], ".", cache="/nonexistent").stdout
    if not re.search(r"^native +available", listed, re.M):
        print("SKIPPED cli_library_test: native is not available here")
        sys.exit(0)
    sys.exit(checks.run(CHECKS, sys.argv[1:], Folder))
