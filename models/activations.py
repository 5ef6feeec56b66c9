"""Runs a model in ONNX Runtime with every intermediate tensor as an output, to see whether its activations are alive.

    python models/activations.py MODEL.onnx...      one line a tensor that looks wrong, then a summary of each model

A tensor is dead when it is all zeros or not finite; an output is useless when it is constant, or when two inputs give
(almost) the same one; a model is useless for comparisons when it magnifies rounding errors. Saturation is reported for
sigmoid and tanh: the share of elements within 1% of their limits.
"""

import os
import sys

import numpy as np
import onnx
import onnxruntime

from random_inputs import random_inputs


def _expose(model):
    shown = {o.name for o in model.graph.output}
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    types = {v.name: v for v in inferred.graph.value_info}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in shown:
                model.graph.output.append(types.get(name, onnx.helper.make_empty_tensor_value_info(name)))
    return model


def run_exposed(path, seeds=(1, 2), dims=None):
    """Yields (names of the graph's own outputs, producer of each tensor, {tensor: array}) for each seed.

    `dims` are the sizes of named dimensions.
    """
    folder = os.path.dirname(os.path.abspath(path))
    original = onnx.load(path, load_external_data=False)
    own = [o.name for o in original.graph.output]
    producer = {name: node for node in original.graph.node for name in node.output}
    feeds = [random_inputs(original, seed, dims=dims) for seed in seeds]
    exposed = _expose(original)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    if any(t.data_location == onnx.TensorProto.EXTERNAL for t in exposed.graph.initializer):
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    session = onnxruntime.InferenceSession(exposed.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    for feed in feeds:
        yield own, producer, dict(zip(names, session.run(names, feed)))


def dead_reason(array, hides=False):
    """Why a tensor is not alive, or None; `hides`: scores, which may be -inf where a key is hidden."""
    if array.dtype.kind != "f":
        return None
    if not np.isfinite(array[array != -np.inf] if hides else array).all():
        return "not finite"
    if not array.any():
        return "all zeros"
    return None


def amplification(path, noise=1e-4, dims=None):
    """How much larger a relative change of the inputs is in the outputs: well above 1, rounding errors grow likewise.

    None where no input is a float. A chaotic model (deep, random, every weight centred) reaches 100 and then no two
    correct programs agree on it.
    """
    model = onnx.load(path, load_external_data=False)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = random_inputs(model, 1, dims=dims)
    generator = np.random.Generator(np.random.PCG64(2))
    moved = {name: (a * (1 + noise * generator.standard_normal(a.shape))).astype(a.dtype) if a.dtype.kind == "f" else a
             for name, a in feed.items()}
    if all(a.dtype.kind != "f" for a in feed.values()):
        return None
    pairs = zip(session.run(None, feed), session.run(None, moved))
    return max(float(np.linalg.norm(b - a) / np.linalg.norm(a)) for a, b in pairs) / noise


def problems(path, dims=None):
    """Everything wrong with a model's activations, as text."""
    found = []
    runs = list(run_exposed(path, dims=dims))
    scores = {n.input[0] for n in onnx.load(path, load_external_data=False).graph.node if n.op_type == "Softmax"}
    for own, producer, tensors in runs:
        found += [f"{name}: {reason}" for name, a in tensors.items()
                  if producer[name].op_type != "ConstantOfShape" and (reason := dead_reason(a, name in scores))]
        found += [f"output {name}: constant" for name in own if np.ptp(tensors[name]) == 0 and tensors[name].size > 1]
    (own, _, first), (_, _, second) = runs
    for name in own:
        spread = max(float(np.abs(first[name]).max()), 1e-30)
        if float(np.abs(first[name] - second[name]).max()) < 0.01 * spread:
            found.append(f"output {name}: two inputs give the same result to 1%")
    if (growth := amplification(path, dims=dims)) is not None and growth > 10:
        found.append(f"chaotic: a relative change of the input grows {growth:.0f} times")
    return found


def summary(path):
    own, producer, tensors = next(run_exposed(path, seeds=(1,)))
    floats = {n: a for n, a in tensors.items() if a.dtype == np.float32 and a.size > 1}
    deviations = {n: float(a.std(dtype=np.float64)) for n, a in floats.items()}
    low, high = min(deviations, key=deviations.get), max(deviations, key=deviations.get)
    saturated = [float((np.abs(a) > 0.99).mean()) for n, a in floats.items() if producer[n].op_type == "Tanh"]
    saturated += [float(((a < 0.01) | (a > 0.99)).mean()) for n, a in floats.items() if producer[n].op_type == "Sigmoid"]
    zeros = max((float((a == 0).mean()), n) for n, a in floats.items())
    lines = [f"{os.path.basename(path)}: deviation {deviations[low]:.3g} ({low}) to {deviations[high]:.3g} ({high})",
             f"  most zeros {zeros[0]:.1%} ({zeros[1]}); most saturated tanh or sigmoid {max(saturated, default=0):.1%}"]
    if (growth := amplification(path)) is not None:
        lines.append(f"  a relative change of the input grows {growth:.2f} times")
    for name in own:
        a = tensors[name]
        lines.append(f"  output {name} {a.shape}: mean {a.mean():.3g} deviation {a.std():.3g} range {a.min():.3g} to {a.max():.3g}")
    return "\n".join(lines)


if __name__ == "__main__":
    failed = False
    for model_path in sys.argv[1:]:
        wrong = problems(model_path)
        failed |= bool(wrong)
        print("\n".join(wrong + [summary(model_path)]))
    sys.exit(1 if failed else 0)
