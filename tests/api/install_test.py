"""The installed tree is complete: the example of docs/cpp.md builds against it with CMake and runs a model, far from the build; so do a
program on the runtime library and one that runs passes of its own.

    python tests/api/install_test.py

Takes the build that COLLAGE_BIN lies in (default build/release). Prints "N passed, N failed" or what went wrong.
"""

import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests", "cli")]

import onnx

import checks
import tiny_models

BUILD = os.path.dirname(os.environ.get("COLLAGE_BIN") or os.path.join(ROOT, "build", "release", "collage"))
CMAKE = os.path.join(os.path.dirname(sys.executable), "cmake")


def page_block(language, start, page):
    """The page's code block of that language that starts with that text."""
    with open(os.path.join(ROOT, page)) as file:
        blocks = re.findall(rf"^```{language}\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if block.startswith(start)]
    return found


def call(*arguments, **environment):
    """The standard output of a command that must succeed; only what a fresh shell has in its environment."""
    plain = {key: os.environ[key] for key in ("PATH", "LANG", "TMPDIR") if key in os.environ}
    result = subprocess.run(arguments, env=plain | environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert result.returncode == 0, f"{arguments[0]} gave {result.returncode}:\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
    return result.stdout


def build_folders_in(path):
    """Run-time search paths of an ELF file that lead into the build or the source tree."""
    dynamic = call("readelf", "-d", path)
    return [line for line in dynamic.splitlines()
            if ("RUNPATH" in line or "RPATH" in line) and os.path.realpath(ROOT) in line]


def check(folder):
    prefix, project = os.path.join(folder, "prefix"), os.path.join(folder, "project")
    call(CMAKE, "--install", BUILD, "--prefix", prefix)
    command = os.path.join(prefix, "bin", "collage")
    for path in (command, os.path.join(prefix, "lib", "libcollage.so")):
        assert not (wrong := build_folders_in(path)), wrong
    assert call(command, "--version").startswith("collage ")

    os.mkdir(project)
    example = page_block("cpp", "#include <collage/collage.h>", "docs/cpp.md")
    # Whatever a model asks for may be more than there is, and these end the process then (include/collage/tensor.h).
    assert not (aborts := re.findall(r"Tensor::(?:zeros|empty|from|scalar)\b|\bdata<", example)), aborts
    tiny_models.write(project, "example.cc", example)
    tiny_models.write(project, "CMakeLists.txt", page_block("cmake", "cmake_minimum_required", "docs/cpp.md"))
    build = os.path.join(project, "build")
    call(CMAKE, "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    call(CMAKE, "--build", build)

    cache = os.path.join(folder, "cache")
    model = os.path.join(folder, "net.onnx")
    onnx.save(tiny_models.small_net(), model)
    printed = call(os.path.join(build, "example"), model, COLLAGE_CACHE=cache)
    assert re.fullmatch(r"scores: 10 values, the first is 0\.\d+\n", printed), printed
    assert os.path.exists(os.path.join(cache, "costs.db")), "the library measured nothing"
    huge = os.path.join(folder, "huge.onnx")
    onnx.save(tiny_models.relu_model((1 << 39,)), huge)
    for path, statuses in ((os.path.join(folder, "absent.onnx"), (3,)), (huge, (3, 5))):
        failed = subprocess.run([os.path.join(build, "example"), path], env=os.environ | {"COLLAGE_CACHE": cache}, capture_output=True, text=True)
        assert failed.returncode in statuses and failed.stdout == "" and failed.stderr.count("\n") == 1, failed


RUNTIME = """#include <collage/program.h>

#include <cstdio>

int main(int, char** argv) {
  collage::Result<collage::Program> program = collage::Program::load(argv[1]);
  if (!program) {
    std::fprintf(stderr, "%s\\n", program.status().to_string().c_str());
    return program.status().exit_code();
  }
  collage::Result<collage::Context> context = program->make_context();
  if (!context) return context.status().exit_code();
  const collage::TensorInfo& image = program->inputs()[0];
  collage::Result<std::vector<collage::Tensor>> outputs = context->run({collage::Tensor::zeros(image.dtype, image.shape)});
  if (!outputs) return outputs.status().exit_code();
  std::printf("%s: %lld values\\n", program->outputs()[0].name.c_str(), static_cast<long long>((*outputs)[0].size()));
}
"""
RUNTIME_BUILD = """cmake_minimum_required(VERSION 3.25)
project(example LANGUAGES CXX)
find_package(collage REQUIRED)
add_executable(example example.cc)
target_link_libraries(example PRIVATE collage::runtime)
"""


def check_runtime(folder):
    """find_package gives collage::runtime, which finds the kernels that were installed with it."""
    prefix, project = os.path.join(folder, "prefix"), os.path.join(folder, "project")
    call(CMAKE, "--install", BUILD, "--prefix", prefix)
    for path in (os.path.join(prefix, "lib", "libcollage_runtime.so"), *glob.glob(os.path.join(prefix, "lib", "collage", "libcollage_kernels_*.so"))):
        assert not (wrong := build_folders_in(path)), wrong
        assert not (missing := [line for line in call("ldd", path).splitlines() if "not found" in line]), (path, missing)
    os.mkdir(project)
    tiny_models.write(project, "example.cc", RUNTIME)
    tiny_models.write(project, "CMakeLists.txt", RUNTIME_BUILD)
    build, model, artifact = (os.path.join(folder, name) for name in ("build", "net.onnx", "net.collage"))
    call(CMAKE, "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    call(CMAKE, "--build", build)
    onnx.save(tiny_models.small_net(), model)
    call(os.path.join(prefix, "bin", "collage"), "compile", model, "-o", artifact, "--targets", "onednn", COLLAGE_CACHE=os.path.join(folder, "cache"))
    assert call(os.path.join(build, "example"), artifact) == "scores: 10 values\n"
    failed = subprocess.run([os.path.join(build, "example"), model], capture_output=True, text=True)
    assert failed.returncode == 3 and failed.stderr.count("\n") == 1, failed


def check_modules(folder):
    """The example of docs/modules.md, on the public headers alone, partitions for two toolchains and compiles."""
    prefix, project, build = (os.path.join(folder, name) for name in ("prefix", "project", "build"))
    call(CMAKE, "--install", BUILD, "--prefix", prefix)
    os.mkdir(project)
    tiny_models.write(project, "example.cc", page_block("cpp", "#include <collage/collage.h>", "docs/modules.md"))
    tiny_models.write(project, "CMakeLists.txt", RUNTIME_BUILD.replace("collage::runtime", "collage::collage"))
    call(CMAKE, "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    call(CMAKE, "--build", build)
    printed = call(os.path.join(build, "example"), COLLAGE_CACHE=os.path.join(folder, "cache"))
    assert 'Compiler="onednn"' in printed and 'Compiler="native"' in printed and "sigmoid(" in printed and "tanh(" not in printed, printed


def check_comparison(folder):
    """An installed command runs other runtimes by itself: only a Python that has them is the user's to name."""
    prefix, model = os.path.join(folder, "prefix"), os.path.join(folder, "net.onnx")
    call(CMAKE, "--install", BUILD, "--prefix", prefix)
    onnx.save(tiny_models.small_net(), model)
    command = [os.path.join(prefix, "bin", "collage"), "bench", model, "--compare", "onnxruntime", "--duration", "0.1", "--effort", "fast"]
    cache = {"COLLAGE_CACHE": os.path.join(folder, "cache")}
    printed = call(*command, COLLAGE_PYTHON=sys.executable, **cache)
    assert re.search(r"^over onnxruntime \d", printed, re.MULTILINE), printed
    on_path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    assert re.search(r"^over onnxruntime \d", call(*command, **(cache | {"PATH": on_path})), re.MULTILINE)


if __name__ == "__main__":
    sys.exit(checks.run([check, check_runtime, check_modules, check_comparison], sys.argv[1:]))
