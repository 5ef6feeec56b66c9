"""A float32 model as one of float16: weights, inputs, outputs, and every tensor between them.

What ONNX defines for float32 alone (scales and regions of Resize) stays so. Weights beyond float16's range take its largest value.
"""

import numpy as np
from onnx import TensorProto, numpy_helper

LARGEST = float(np.finfo(np.float16).max)
FLOAT32_INPUTS = {"Resize": (1, 2)}  # by position


def _narrow(tensor):
    values = numpy_helper.to_array(tensor)
    limited = np.where(np.isfinite(values), np.clip(values, -LARGEST, LARGEST), values)
    tensor.CopyFrom(numpy_helper.from_array(limited.astype(np.float16), tensor.name))


def to_float16(model):
    """Changes the model; graphs inside nodes (If, Loop) are not looked into."""
    graph = model.graph
    kept = {node.input[i] for node in graph.node for i in FLOAT32_INPUTS.get(node.op_type, ()) if i < len(node.input)}
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and tensor.name not in kept:
            _narrow(tensor)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        kind = value.type.tensor_type
        if kind.elem_type == TensorProto.FLOAT and value.name not in kept:
            kind.elem_type = TensorProto.FLOAT16
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in ("to", "dtype") and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16
            elif attribute.HasField("t") and attribute.t.data_type == TensorProto.FLOAT and not kept & set(node.output):
                _narrow(attribute.t)
    return model
