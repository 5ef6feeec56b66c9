"""Seeded inputs that suit a model: standard normal numbers, indices within the table they select from, masks."""

import numpy as np
import onnx


def _consumers(graph, name):
    return [(node, list(node.input).index(name)) for node in graph.node if name in node.input]


def _upper_bound(graph, name):
    """Rows of the table that an integer input selects from; None for an input that selects nothing (a mask)."""
    rows = {t.name: t.dims[0] for t in graph.initializer if t.dims}
    bounds = [rows[n.input[0]] for n, i in _consumers(graph, name) if n.op_type == "Gather" and i == 1 and n.input[0] in rows]
    return min(bounds, default=None)


def random_inputs(model, seed, batch=1):
    """One array an input of the graph: standard normal, valid indices, or a mask of ones with zeros at its end."""
    graph, generator, inputs = model.graph, np.random.Generator(np.random.PCG64(seed)), {}
    weights = {t.name for t in graph.initializer}
    for value in graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        shape = [d.dim_value or batch for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if np.issubdtype(dtype, np.floating):
            inputs[value.name] = generator.standard_normal(shape).astype(dtype)
        else:
            bound = _upper_bound(graph, value.name)
            if bound is None:
                seen = generator.integers(shape[-1] // 2, shape[-1])
                inputs[value.name] = np.broadcast_to(np.arange(shape[-1]) < seen, shape).astype(dtype)
            else:
                inputs[value.name] = generator.integers(0, bound, shape).astype(dtype)
    return inputs
