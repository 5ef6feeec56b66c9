"""Labels of PyTorch: operators of ATen that modules call, beside PyTorch itself.

    build/torch-env/bin/python tests/torch_compile/labels_test.py [CASE...]
"""

import os
import sys

import cases
from cases import case
from told import Told

import numpy as np
import torch

import collage

SEED = 7
SCRIPT = os.path.join(os.path.dirname(__file__), "..", "modules", "script", "6_library_function.script")

# label, inputs (shapes, of float32 where nothing else is said), attributes, what PyTorch calls it; extents that are names are drawn.
CALLS = [
    ("torch.conv2d", ["1 c 9 9", "m c 3 3", "m"], dict(padding=[1, 1], stride=2), lambda x, w, b: torch.conv2d(x, w, b, stride=2, padding=1)),
    ("torch.conv2d", ["1 c 9 9", "m c 3 3"], dict(padding="same"), lambda x, w: torch.conv2d(x, w, padding="same")),
    ("torch.nn.functional.gelu", ["n d"], dict(approximate="tanh"), lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
    ("torch.special.erf", ["n d"], {}, torch.special.erf),
    ("torch.aten.cumsum", ["n d"], dict(dim=1), lambda x: torch.cumsum(x, 1)),
    ("torch.cumsum.default", ["n d"], dict(dim=-1, dtype="float64"), lambda x: torch.cumsum(x, -1, dtype=torch.float64)),
    ("torch.sum", ["n d"], {}, torch.sum),
    ("torch.sum", ["n d m"], dict(dim=[0, 2], keepdim=True), lambda x: torch.sum(x, [0, 2], keepdim=True)),
    ("torch.add", ["n d", "d"], dict(alpha=0.5), lambda x, y: torch.add(x, y, alpha=0.5)),
    ("torch.add", ["n d"], dict(other=2), lambda x: x + 2),
    ("torch.pow", ["n d"], dict(self=2), lambda x: torch.pow(2, x)),
    ("torch.cat", ["n d", "m d", "1 d"], {}, lambda *xs: torch.cat(xs)),
    ("torch.stack", ["n d", "n d"], dict(dim=1), lambda *xs: torch.stack(xs, 1)),
    ("torch.einsum", ["n d", "d m"], dict(equation="nd,dm->mn"), lambda x, y: torch.einsum("nd,dm->mn", x, y)),
    ("torch.addmm", ["m", "n d", "d m"], dict(beta=0.5), lambda b, x, y: torch.addmm(b, x, y, beta=0.5)),
    ("torch.linear", ["n d", "m d"], {}, torch.nn.functional.linear),
    ("torch.layer_norm", ["n 12", "12", "12"], dict(normalized_shape=[12], eps=1e-3), lambda x, w, b: torch.layer_norm(x, [12], w, b, 1e-3)),
    ("torch.layer_norm", ["n 12", "12"], dict(normalized_shape=[12], tensors="input, bias"), lambda x, b: torch.layer_norm(x, [12], None, b)),
    ("torch.where.self", ["n d bool", "n d", "n d"], {}, torch.where),
    ("torch.gather", ["9 d", "3 d int64"], dict(dim=0), lambda x, i: torch.gather(x, 0, i)),
    ("torch.index_select", ["9 d", "n int64"], dict(dim=0), lambda x, i: torch.index_select(x, 0, i)),
    ("torch.topk", ["n 9"], dict(k=3), lambda x: torch.topk(x, 3)),
    ("torch.max.dim", ["n d"], dict(dim=0), lambda x: torch.max(x, 0)),
    ("torch.split.Tensor", ["9 d"], dict(split_size=4), lambda x: torch.split(x, 4)),
    ("torch.upsample_bilinear2d", ["1 c 5 7"], dict(output_size=[11, 9], align_corners=True),
     lambda x: torch.nn.functional.interpolate(x, (11, 9), mode="bilinear", align_corners=True)),
    ("torch.upsample_nearest2d.vec", ["1 c 5 7"], dict(output_size=None, scale_factors=[2.0, 3.0]),
     lambda x: torch.nn.functional.interpolate(x, scale_factor=(2.0, 3.0), mode="nearest")),
    ("torch.grid_sampler", ["1 c 5 7", "1 4 3 2"], dict(interpolation_mode=0, padding_mode=0, align_corners=False),
     lambda x, g: torch.nn.functional.grid_sample(x, g, align_corners=False)),
    ("torch.linalg.svd", ["5 4"], dict(full_matrices=False), lambda x: torch.linalg.svd(x, full_matrices=False)),
    ("torch.bucketize.Tensor", ["n d", "5"], dict(right=1, out_int32=True), lambda x, b: torch.bucketize(x, b, right=True, out_int32=True)),
    ("torch.permute", ["n d m"], dict(dims=[2, 0, 1]), lambda x: x.permute(2, 0, 1)),
]


def drawn(inputs, random):
    extents = {name: int(random.integers(1, 9)) for name in ("n", "d", "m", "c")}
    arrays = []
    for words in (text.split() for text in inputs):
        dtype = words.pop() if words[-1] in ("int64", "bool") else "float32"
        shape = [extents.get(word) or int(word) for word in words]
        values = random.integers(0, 3 if dtype == "int64" else 2, shape) if dtype != "float32" else random.standard_normal(shape)
        arrays.append(np.sort(values.astype(dtype)) if shape == [5] else values.astype(dtype))
    return arrays


def called(label, arrays, attributes):
    builder = collage.Builder()
    parameters = [collage.parameter(f"x{i}", array.shape, str(array.dtype)) for i, array in enumerate(arrays)]
    with builder.function("main", *parameters):
        builder.output(builder.emit_packed(label, *parameters, **attributes))
    return builder.model()


def run(model, *arrays, **options):
    return model.compile(**{"targets": "reference", **options})(*arrays)


def raised(call, code=None):
    try:
        call()
    except collage.Error as wrong:
        assert "\n" not in str(wrong) and code in (None, wrong.code), (wrong, wrong.code)
        return str(wrong)
    raise AssertionError("nothing was raised")


@case
def every_kind_of_argument():
    """Beside PyTorch on random shapes; text and script say the same module."""
    random = np.random.default_rng(SEED)
    for label, inputs, attributes, function in CALLS:
        for _ in range(3):
            arrays = drawn(inputs, random)
            model = called(label, arrays, attributes)
            text, script = model.text(), model.script()
            assert collage.parse(text).text() == text and collage.parse(script).text() == text, (label, text, script)
            cases.same(tuple(map(torch.from_numpy, cases.flat(run(model, *arrays)))),
                       tuple(value.clone(memory_format=torch.contiguous_format) for value in cases.flat(function(*map(torch.from_numpy, arrays)))))


@case
def results_are_written_in_place():
    """By the overload that takes them, where there is one; the interpreter's memory and the kernels' are used as they are."""
    from collage import torch_labels

    for label, inputs, attributes, outs in (("torch.cumsum", (((4, 4), "float32"),), {"dim": 0}, ["out"]),
                                            ("torch.topk", (((4, 4), "float32"),), {"k": 1}, ["values", "indices"]),
                                            ("torch.special.erf", (((4, 4), "float32"),), {}, ["out"]),
                                            ("torch.conv2d", (((1, 1, 4, 4), "float32"), ((1, 1, 3, 3), "float32")), {}, [])):
        call, types = torch_labels._resolved(label, inputs, tuple(attributes.items()))
        assert list(call.outs) == outs, (label, call)
        if outs:
            results = [torch.empty(shape, dtype=getattr(torch, dtype)) for shape, dtype in types]
            given = [torch.randn(shape) for shape, _ in inputs]
            written = cases.flat(call(given, **dict(zip(outs, results))))
            assert [x.data_ptr() for x in written] == [x.data_ptr() for x in results], label


@case
def beside_operators():
    """In a graph of others, by kernels of native; saved and loaded."""
    text = """#[version = "0.0.5"]
extern @sums(Tensor[(8, 100), float32]) = "torch.erf";
extern @best(Tensor[(8, 100), float32], k=3) = "torch.topk";
def @main(%x: Tensor[(8, 100), float32]) {
  %0 = @sums(exp(%x));
  %1 = @best(tanh(%0));
  (negative(%1.0), %1.1)
}
"""
    x = np.random.default_rng(SEED).standard_normal((8, 100)).astype(np.float32)
    wanted = torch.topk(torch.tanh(torch.erf(torch.exp(torch.from_numpy(x)))), 3)
    for targets in ("native", "reference", "native,onednn"):
        values, places = run(collage.parse(text), x, targets=targets)
        np.testing.assert_allclose(values, -wanted.values.numpy(), rtol=1e-5)
    program = collage.parse(text).compile(targets="reference")
    path = os.path.join(os.environ["COLLAGE_CACHE"], "labels.collage")
    program.save(path)
    np.testing.assert_allclose(collage.load(path)(x)[0], values, rtol=1e-5)


@case
def script_of_the_proposal():
    """torch.conv2d as a function of the environment, with the padding that the stated result needs; without it that is an error."""
    with open(SCRIPT, encoding="utf-8") as file:
        text = file.read()
    random = np.random.default_rng(SEED)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((1, 10, 32, 32), (20, 10, 3, 3)))
    padded = text.replace('R.extern("torch.conv2d")', 'R.extern("torch.conv2d", padding=[1, 1])')
    for script, padding in ((padded, 1), (text.replace("(1, 20, 32, 32)", "(1, 20, 30, 30)"), 0)):
        cases.same(torch.from_numpy(run(collage.parse(script, [w]), x)), torch.conv2d(torch.from_numpy(x), torch.from_numpy(w), padding=padding))
    assert padded != text
    wrong = raised(lambda: run(collage.parse(text, [w]), x), collage.ErrorCode.BAD_MODEL)
    assert wrong == ("@torch_conv2d is declared to give Tensor[(1, 20, 32, 32), float32], torch.conv2d gives Tensor[(1, 20, 30, 30), float32]"), wrong


@case
def nodes_of_onnx():
    """Nodes without an operator of Collage, between others, in static models and in those of many shapes."""
    import onnx
    from onnx import helper

    collage.register_node("com.example::Inverse", "torch.linalg.inv")
    collage.register_node("com.example::Rolled", "torch.roll")
    collage.register_node("com.example::Rolled", "torch.roll")
    nodes = [helper.make_node("Exp", ["x"], ["a"], "exp"), helper.make_node("Rolled", ["a"], ["b"], "rolled", domain="com.example", shifts=[1], dims=[1]),
             helper.make_node("Inverse", ["b"], ["c"], "inverse", domain="com.example"), helper.make_node("Neg", ["c"], ["y"], "neg")]
    folder = os.environ["COLLAGE_CACHE"]

    def saved(shape):
        values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in "xy"]
        graph = helper.make_graph(nodes, "g", values[:1], values[1:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)])
        onnx.save(model, os.path.join(folder, "net.onnx"))
        return os.path.join(folder, "net.onnx")

    x = np.random.default_rng(SEED).standard_normal((3, 4, 4)).astype(np.float32)
    wanted = -torch.linalg.inv(torch.roll(torch.exp(torch.from_numpy(x)), 1, 1)).numpy()
    for targets in ("native", "reference"):
        np.testing.assert_allclose(run(collage.load(saved([3, 4, 4])), x, targets=targets), wanted, rtol=1e-3, atol=1e-4)
    dynamic = collage.load_dynamic(saved(["n", 4, 4]), targets="native")
    for n in (3, 2):
        np.testing.assert_allclose(dynamic(x[:n]), wanted[:n], rtol=1e-3, atol=1e-4)
    usage, bad = collage.ErrorCode.USAGE, collage.ErrorCode.BAD_MODEL
    assert raised(lambda: collage.register_node("com.example::Inverse", "torch.exp"), usage) == "nodes com.example::Inverse have a meaning already"
    assert raised(lambda: collage.register_node("Inverse", "torch.exp"), usage) == "'Inverse' is no node's name: \"domain::Operator\""
    assert raised(lambda: collage.register_node("com.example::Other", "mine.other"), bad) == "there is no external function 'mine.other'"
    nodes[1].attribute[0].name = "by"
    wrong = raised(lambda: collage.load(saved([3, 4, 4])))
    assert "node 'rolled'" in wrong and "has no attribute 'by'" in wrong, wrong


@case
def stages_call_them():
    """A stage of a tensor program, by a label without attributes."""
    text = """#[version = "0.0.5"]
program @scaled {
  param A: float32[8, 100];
  stage R[i:8, j:100] = extern "torch.erf"(A): float32;
  result C[i:8, j:100] = R[i, j] * 2.0f;
}
def @main(%x: Tensor[(8, 100), float32]) { @scaled(%x) }
"""
    x = np.random.default_rng(SEED).standard_normal((8, 100)).astype(np.float32)
    for targets in ("native", "reference"):
        np.testing.assert_allclose(run(collage.parse(text), x, targets=targets), 2 * torch.erf(torch.from_numpy(x)).numpy(), rtol=1e-5)


@case
def one_line_says_what_is_wrong():
    square, pair = np.zeros((4, 4), np.float32), [np.zeros((4, 4), np.float32), np.zeros((3, 5), np.float32)]
    unsupported, bad = collage.ErrorCode.UNSUPPORTED, collage.ErrorCode.BAD_MODEL
    for label, arrays, attributes, code, wanted in (
            ("torch.no_such", [square], {}, unsupported, f"torch.no_such: PyTorch {torch.__version__} has no such operator"),
            ("torch.add.Other", [square], {}, unsupported, f"torch.add.Other: PyTorch {torch.__version__} has no such operator"),
            ("torch._softmax", [square], {}, unsupported, f"torch._softmax: PyTorch {torch.__version__} has no such operator"),
            ("torch.add_", [square], {}, unsupported, "torch.add_: it is no function from tensors to new tensors"),
            ("torch.from_file", [square], {}, unsupported, "torch.from_file: it is no function from tensors to new tensors"),
            ("torch.equal", [square, square], {}, unsupported, "torch.equal: it is no function from tensors to new tensors"),
            ("torch.rand_like", [square], {}, unsupported, "torch.rand_like: it draws random numbers: calls give what their inputs say"),
            ("torch.empty_like", [square], {}, unsupported, "torch.empty_like: it gives memory that nobody wrote"),
            ("torch.resize", [square], dict(size=[9, 9]), unsupported, "torch.resize: it gives memory that nobody wrote"),
            ("torch.nonzero", [square], {}, unsupported, "torch.nonzero: the shapes of its results depend on values"),
            ("torch.fft.rfft", [square], {}, unsupported, "torch.fft.rfft: it gives a tensor of torch.complex64, torch.strided"),
            ("torch.mm", pair, {}, bad, "torch.mm: a and b must have same reduction dim, but got [4, 4] X [3, 5]."),
            ("torch.bmm", [square], {}, bad, "torch.bmm: no overload (default, dtype) takes 1 tensor"),
            ("torch.mv", [square], {}, bad, "torch.mv: it takes 2 tensors, not 1"),
            ("torch.conv2d", [square], {}, bad, "torch.conv2d: no overload (default, padding) takes 1 tensor"),
            ("torch.cumsum", [square], {}, bad, "torch.cumsum: its argument 'dim' is missing: aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"),
            ("torch.cumsum", [square], dict(dim="x"), bad, "torch.cumsum: attribute 'dim' is of another kind: int"),
            ("torch.cumsum", [square], dict(dim=0, axis=1), bad,
             "torch.cumsum: aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor has no attribute 'axis'"),
            ("torch.dot", [square, square], dict(tensors="self, other"), bad, "torch.dot: tensors: a name of an argument for each of 2 tensors, not 'self, other'"),
    ):
        assert raised(lambda: called(label, arrays, attributes), code) == wanted, raised(lambda: called(label, arrays, attributes))


def of_the_database():
    """The calls of ATen that samples of PyTorch's operator database make, one of each overload: its arguments and what it gave."""
    from torch.testing._internal.common_methods_invocations import op_db

    calls = {}

    class Recorder(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, overload, types, args=(), kwargs=None):
            held = torch.utils._pytree.tree_map_only(torch.Tensor, lambda x: x.clone(memory_format=torch.contiguous_format), (args, kwargs or {}))
            given = overload(*args, **kwargs or {})
            if overload.namespace == "aten" and overload not in calls and all(isinstance(x, torch.Tensor) for x in cases.flat(given)):
                kept = torch.utils._pytree.tree_map_only(torch.Tensor, lambda x: x.clone(memory_format=torch.contiguous_format), given)
                calls[overload] = ({**dict(zip([argument.name for argument in overload._schema.arguments], held[0])), **held[1]}, kept)
            return given

    for op in op_db:
        for _, sample in zip(range(3), op.sample_inputs("cpu", torch.float32) if op.supports_dtype(torch.float32, "cpu") else ()):
            with torch.no_grad(), Recorder():
                try:
                    op.get_op()(sample.input, *sample.args, **sample.kwargs)
                except (AssertionError, RuntimeError):  # of operators that want another device or library
                    pass
    return calls


@case
def schemas_of_the_database():
    """Each overload that the database calls by its label: tensors by the names of their arguments, all else as attributes."""
    from collage import torch_labels
    from collage.aten.table import DTYPES

    refused, computed = {}, 0
    for overload, (given, wanted) in of_the_database().items():
        label = f"torch.{overload._schema.name.split('::')[1]}.{overload._overloadname}"
        tensors, attributes = [], {}
        for name, value in given.items():
            values = value if isinstance(value, (list, tuple)) and value else [value]
            if all(isinstance(one, torch.Tensor) for one in values):
                tensors += [(name, one) for one in values]
            elif value is not None:
                attributes[name] = str(value).split(".")[1] if isinstance(value, torch.dtype) else value
        if any(x.dtype not in DTYPES or x.numel() == 0 for x in [*(x for _, x in tensors), *cases.flat(wanted)]):
            continue
        attributes["tensors"] = ", ".join(name for name, _ in tensors)
        inputs = [x for _, x in tensors]
        try:
            run, rule = torch_labels.resolve(label)
            results = [torch.empty(shape, dtype=getattr(torch, dtype)) for shape, dtype in rule([(x.shape, DTYPES[x.dtype]) for x in inputs], attributes)]
            run(inputs, results, attributes)
        except collage.Error as wrong:
            refused[label] = str(wrong)
            continue
        computed += 1
        for result, value in zip(results, cases.flat(wanted), strict=True):
            torch.testing.assert_close(result, value, rtol=1e-5, atol=1e-5, equal_nan=True, msg=lambda text, label=label: f"{label}: {text}")
    left = {label: why for label, why in refused.items() if not why.startswith(("it is no function", "it draws random", "it gives memory", "PyTorch 2"))
            and "depend on values" not in why and not any(kind in why for kind in ("Layout", "Device", "MemoryFormat"))}
    assert set(left) <= {"torch.geqrf.default", "torch.histogram.bin_ct", "torch.histogram.bins_tensor", "torch.scatter.reduce", "torch.gather.default"}, left
    assert computed > 330, (computed, refused)


def told(function, *args):
    """What is logged while a function is compiled and compared with eager."""
    lines = Told().lines
    cases.both(function, *args)
    return [line for line in lines if "by labels" in line or "in Collage" in line]


@case
def inside_a_part():
    """An operator that Collage lacks joins the parts before and behind it, unless that is in vain: compiled without, it stays in PyTorch."""
    first, last = cases.mlp(16, 32, 24), cases.mlp(24, 32, 8)
    x = torch.randn(6, 16)

    def values(x):
        return last(torch.cummax(first(x), 1).values)

    assert told(values, x) == ["called by labels: aten.cummax.default x1", "all 14 operators in Collage"], told(values, x)

    def places(x):
        return last(torch.cummax(first(x), 1).indices.float())

    assert told(places, x) == ["2 parts in Collage: in PyTorch aten.cummax.default x1"], told(places, x)
    behind = told(lambda x: torch.cummax(first(x), 1).values, x)
    assert behind == ["1 parts in Collage: in PyTorch aten.cummax.default x1"], behind

    def root(x):
        return last(torch.linalg.cholesky_ex(torch.eye(24) * x, check_errors=True).L)  # of what is drawn to check a program it has none

    refused = told(root, torch.rand(24) + 1)
    assert [line.split(": ")[0] for line in refused] == ["called by labels", "all 10 operators in Collage", "no operators by labels", "2 parts in Collage"], refused


@case
def errors_of_a_run():
    """What the operator finds wrong with values, with the label."""
    indices = np.array([[7, 0]], np.int64)
    program = called("torch.gather", [np.zeros((2, 2), np.float32), indices], dict(dim=1)).compile(targets="reference")
    wrong = raised(lambda: program(np.zeros((2, 2), np.float32), indices))
    assert wrong.endswith("torch.gather: index 7 is out of bounds for dimension 1 with size 2"), wrong
    np.testing.assert_array_equal(program(np.eye(2, dtype=np.float32), indices % 2), [[0, 1]])
    beyond = called("torch.as_strided", [np.zeros((4,), np.float32)], dict(size=[4], stride=[1], storage_offset=1000))
    assert "out of bounds for storage" in raised(lambda: run(beyond, np.zeros((4,), np.float32)))


if __name__ == "__main__":
    sys.exit(cases.main(sys.argv[1:]))
