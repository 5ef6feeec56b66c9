"""Models over symbols that a run counts: NonZero, Compress, Unique, TopK of a computed k, NonMaxSuppression, against ONNX Runtime.

    python tests/python/counted_test.py [CHECK...]

Takes the build that COLLAGE_BIN lies in (default build/release). Prints "N passed, 0 failed" or what went wrong.
"""

import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import built_package

if built_package.BUILT:
    import collage

node = helper.make_node


def integers(name, *values):
    return node("Constant", [], [name], value=helper.make_tensor(name, TensorProto.INT64, [len(values)], values))


def above(data, threshold, places):
    """Where `data` is above `threshold`, (count, rank)."""
    return [node("Greater", [data, threshold], [f"{places}_is"]), node("NonZero", [f"{places}_is"], [f"{places}_at"]), node("Transpose", [f"{places}_at"], [places])]


# Inputs (name, shape: a name is a symbol), nodes, outputs, the dimensions of the outputs.
X, Z, W = ("x", ["n"]), ("z", []), ("w", [])
MODELS = {
    "compress": ([X, Z], [node("Greater", ["x", "z"], ["c"]), node("Compress", ["x", "c"], ["y"]), node("ReduceSum", ["y"], ["s"], keepdims=0)],
                 {"y": ["count0"], "s": []}),
    "compress rows": ([("x", [3, "n"]), ("z", [])], [node("ReduceMax", ["x"], ["m"], axes=[0], keepdims=0), node("Greater", ["m", "z"], ["c"]),
                      node("Compress", ["x", "c"], ["y"], axis=1)], {"y": ["3", "count0"]}),
    "unique": ([("x", ["n", 3])], [node("Round", ["x"], ["r"]), node("Unique", ["r"], ["u", "first", "of", "counts"]), node("Add", ["u", "u"], ["y"])],
               {"y": ["count0"], "first": ["count0"], "of": ["3 * n"], "counts": ["count0"]}),
    "unique columns": ([("x", [2, "n"])], [node("Round", ["x"], ["r"]), node("Unique", ["r"], ["u", "first"], axis=1, sorted=0), node("Exp", ["u"], ["y"])],
                       {"y": ["2", "count0"], "first": ["count0"]}),
    "top k": ([X, Z], [*above("x", "z", "p"), node("Shape", ["p"], ["s"]), integers("zero", 0), node("Gather", ["s", "zero"], ["found"]), integers("four", 4),
              node("Min", ["found", "four"], ["k"]), node("TopK", ["x", "k"], ["y", "i"])], {"y": ["count1"], "i": ["count1"]}),
    "two counts": ([("x", ["a", "b"]), Z, W], [*above("x", "z", "p"), node("GatherND", ["x", "p"], ["g"]), node("Tanh", ["g"], ["q"]), *above("q", "w", "p2"),
                   node("GatherND", ["g", "p2"], ["y"])], {"y": ["count1"], "q": ["count0"], "p": ["count0", "2"]}),
    "a bounded slice": ([X, Z], [*above("x", "z", "p"), integers("begin", 0), integers("end", 5), node("Slice", ["p", "begin", "end"], ["y"])],
                        {"y": ["min(count0, 5)", "1"]}),
    "boxes": ([("x", [2, "n", 4]), ("s", [2, 3, "n"]), Z], [integers("most", 3), node("NonMaxSuppression", ["x", "s", "most", "z"], ["y"])], {"y": ["count0", "3"]}),
}


def saved(folder, inputs, nodes, outputs):
    path = os.path.join(folder, "model.onnx")
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs],
                              [helper.make_empty_tensor_value_info(name) for name in outputs])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def feeds(inputs):
    for size in (1, 4, 23):
        random = np.random.default_rng(size)
        feed = {name: np.array(2 * random.standard_normal([size if isinstance(d, str) else d for d in shape]), np.float32) for name, shape in inputs}
        for threshold in (0.3, 0.9):  # of overlaps too
            yield feed | {name: np.array(threshold, np.float32) for name, shape in inputs if shape == []}
    if any(name == "z" for name, shape in inputs) and not any(name == "s" for name, shape in inputs):
        yield feed | {"z": np.array(99, np.float32)}  # nothing is found


def check_models(folder):
    """Each is one module, whose programs, text and files give what ONNX Runtime gives, for any number that is found."""
    for name, (inputs, nodes, outputs) in MODELS.items():
        path = saved(folder, inputs, nodes, outputs)
        family = collage.load_symbolic(path)
        assert {info.name: list(info.dims) for info in family.outputs} == outputs, (name, family)
        session = onnxruntime.InferenceSession(path)
        text, artifact = os.path.join(folder, "model.relay"), os.path.join(folder, "model.collage")
        family.save(text)
        program, of_text = (model.compile(targets=["native", "reference"]) for model in (family, collage.load_symbolic(text)))
        runs = [(feed, session.run(list(outputs), feed)) for feed in feeds(inputs)]
        shapes = {tuple(array.shape for array in wanted) for _, wanted in runs}
        assert len(shapes) > 1, (name, shapes)
        program.run(runs[0][0])
        program.save(artifact)
        for run in (program.run, of_text.run, collage.load(artifact).run):
            for feed, wanted in runs:
                for got, want in zip(run(feed).values(), wanted):
                    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=name)
                    assert got.dtype == want.dtype, (name, got.dtype)


def check_refusals(folder):
    """An instance holds for its counts alone; buckets and states of such a model, and counts inside loops, are refused."""
    inputs, nodes, outputs = MODELS["compress"]
    family = collage.load_symbolic(saved(folder, inputs, nodes, outputs))
    instance = family.at(n=64, count0=65)
    assert instance.outputs[0].shape == (65,), instance
    body = helper.make_graph([*above("row", "z", "p"), node("Size", ["p"], ["found"])], "body",
                             [helper.make_tensor_value_info("row", TensorProto.FLOAT, [5])], [helper.make_tensor_value_info("found", TensorProto.INT64, [])])
    scan = [node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)]
    tests = [
        (lambda: family.at(n=4), "count0 is no symbol"),
        (lambda: instance.compile(targets="reference"), "in this run, not 65"),
        (lambda: family.compile(targets="reference", buckets={"n": [8]}), "a run counts sizes: it takes no buckets and no states"),
        (lambda: collage.load_symbolic(saved(folder, [("x", [300, 5]), Z], scan, ["y"])), "whose rows a run counts"),
    ]
    for call, wanted in tests:
        try:
            call()
        except collage.Error as error:
            assert wanted in str(error), (wanted, str(error))
        else:
            raise AssertionError(f"nothing was raised, wanted {wanted}")


def main(arguments):
    return built_package.run([check_models, check_refusals], arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
