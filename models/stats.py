"""Counts nodes, operations and bytes of weights of an ONNX file (weights themselves stay on disk where external)."""

import math

import onnx


def _attribute(node, name, default):
    return next((onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def _flops(node, shapes):
    """Twice the multiply-adds of convolutions and products; everything else counts nothing, as is customary."""
    if node.op_type == "Conv":
        weight = shapes[node.input[1]]
        return 2 * math.prod(shapes[node.output[0]]) * math.prod(weight[1:])
    if node.op_type == "MatMul":
        return 2 * math.prod(shapes[node.output[0]]) * shapes[node.input[0]][-1]
    if node.op_type == "Gemm":
        inner = shapes[node.input[0]][0 if _attribute(node, "transA", 0) else 1]
        return 2 * math.prod(shapes[node.output[0]]) * inner
    return 0


def _bytes(tensor):
    return math.prod(tensor.dims) * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize


def stats(path):
    model = onnx.load(path, load_external_data=False)
    weights = sum(_bytes(t) for t in model.graph.initializer)
    shapes = {t.name: tuple(t.dims) for t in model.graph.initializer}
    constant = set(shapes)
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    for info in [*inferred.input, *inferred.output, *inferred.value_info]:
        shapes[info.name] = tuple(d.dim_value for d in info.type.tensor_type.shape.dim)
    total = folded = 0
    for node in model.graph.node:
        flops = _flops(node, shapes)
        total += flops
        if all(name in constant or not name for name in node.input):
            constant.update(node.output)
            folded += flops
    return {"nodes": len(model.graph.node), "gflop": total / 1e9, "gflop_without_constants": (total - folded) / 1e9,
            "weight_mib": weights / 2**20, "opset": model.opset_import[0].version}


def stats_line(name, path):
    s = stats(path)
    return (f"{name:18} opset {s['opset']:2}  {s['nodes']:5} nodes  {s['gflop']:8.3f} GFLOP "
            f"({s['gflop_without_constants']:.3f} with constants folded)  {s['weight_mib']:8.2f} MiB")
