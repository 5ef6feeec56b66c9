"""Seeded inputs that suit a model: standard normal numbers, indices within the table they select from, masks, lengths."""

import numpy as np
import onnx


def _consumers(graph, name):
    return [(node, list(node.input).index(name)) for node in graph.node if name in node.input]


def _upper_bound(graph, name):
    """Rows of the table that an integer input selects from; None for an input that selects nothing (a mask)."""
    rows = {t.name: t.dims[0] for t in graph.initializer if t.dims}
    bounds = [rows[n.input[0]] for n, i in _consumers(graph, name) if n.op_type == "Gather" and i == 1 and n.input[0] in rows]
    return min(bounds, default=None)


def _is_lengths(graph, name):
    """Whether an input says, perhaps cast, how long the sequences are that an LSTM reads."""
    used = _consumers(graph, name)
    used += [later for cast, _ in used if cast.op_type == "Cast" for later in _consumers(graph, cast.output[0])]
    return any(node.op_type == "LSTM" and i == 4 for node, i in used)


def _size(dim, batch, dims):
    """`dims` gives named dimensions, and so sums of them such as "past + sequence"; others are `batch`."""
    if dim.HasField("dim_value") or not dim.dim_param:
        return dim.dim_value or batch
    parts = [p.strip() for p in dim.dim_param.split("+")]
    return dims.get(dim.dim_param) or sum(dims.get(p, batch) for p in parts)


def random_inputs(model, seed, batch=1, dims=None):
    """One array an input of the graph: standard normal, valid indices, lengths, or masks of ones with zeros at their ends.

    `dims` gives the sizes of named dimensions; lengths are up to that of "length".
    """
    graph, generator, inputs = model.graph, np.random.Generator(np.random.PCG64(seed)), {}
    weights = {t.name for t in graph.initializer}
    for value in graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        shape = [_size(d, batch, dims or {}) for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if np.issubdtype(dtype, np.floating):
            inputs[value.name] = generator.standard_normal(shape).astype(dtype)
        elif _is_lengths(graph, value.name):
            inputs[value.name] = generator.integers(1, (dims or {}).get("length", batch) + 1, shape).astype(dtype)
        else:
            bound = _upper_bound(graph, value.name)
            if bound is None:
                seen = generator.integers(shape[-1] // 2, max(shape[-1], 1), shape[:-1] + [1])
                inputs[value.name] = (np.arange(shape[-1]) < np.maximum(seen, 1)).astype(dtype)
            else:
                inputs[value.name] = generator.integers(0, bound, shape).astype(dtype)
    return inputs


def random_image(seed, height, width):
    """(3, height, width) between 0 and 1, noise of several scales: flat in places and busy in others, as photographs are."""
    generator, total = np.random.Generator(np.random.PCG64(seed)), np.zeros((3, height, width))
    for cells in (3, 8, 20, 50, max(height, width)):
        rows, columns = (np.arange(size) * cells // size for size in (height, width))
        total += generator.standard_normal((3, cells, cells))[:, rows][:, :, columns]
    return (1 / (1 + np.exp(-total))).astype(np.float32)
