"""A float32 model as one of 8-bit integers, in the form that ONNX Runtime's quantisation tool gives it.

Every operator that the tool knows stands between DequantizeLinear and QuantizeLinear: activations of uint8 with one scale,
weights of int8 with one an output channel, biases of int32. Transformers have only products with weights quantised, and keep
their results in float32, as is usual: norms and softmax stay as they are. Scales are those of seeded random inputs.

Weights of 7 bits are what the tool makes for processors without VNNI (reduce_range): those add up pairs of products in 16 bits,
which is exact with them.
"""

import logging
import os
import tempfile

import onnx
import onnx.version_converter
import onnxruntime
from onnxruntime import quantization

from random_inputs import random_inputs

CALIBRATION_INPUTS = 4
LEAST_OPSET = 13  # the first in which scales lie along an axis
PRODUCTS_ONLY = {
    "op_types_to_quantize": ["MatMul", "Gemm"],
    "extra_options": {"MatMulConstBOnly": True, "OpTypesToExcludeOutputQuantization": ["MatMul", "Gemm"]},
}


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, model, seed):
        self._feeds = iter([random_inputs(model, seed + i) for i in range(CALIBRATION_INPUTS)])

    def get_next(self):
        return next(self._feeds, None)


def _optimised(path, folder):
    """The model with batch norms in convolutions and shapes folded, as the tool wants it, of an operator set that knows axes."""
    model = onnx.load(path)
    if model.opset_import[0].version < LEAST_OPSET:
        path = os.path.join(folder, "newer.onnx")
        onnx.save(onnx.version_converter.convert_version(model, LEAST_OPSET), path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = os.path.join(folder, "optimised.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return options.optimized_model_filepath


def _is_transformer(model):
    """Products of matrices do most of the work."""
    kinds = [node.op_type for node in model.graph.node]
    return kinds.count("MatMul") > kinds.count("Conv")


def quantise(path, to, seed=0, weight_bits=8):
    """Writes the model in `path` to `to`, quantised, with int8 weights of 8 or 7 bits."""
    with tempfile.TemporaryDirectory() as folder:
        optimised = _optimised(path, folder)
        model = onnx.load(optimised)
        temporary = os.path.join(folder, "quantised.onnx")
        level = logging.getLogger().level
        logging.getLogger().setLevel(logging.ERROR)  # the tool warns that it was given no pre-processed model
        try:
            quantization.quantize_static(
                optimised, temporary, Calibration(model, seed), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                reduce_range=weight_bits == 7,
                activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8,
                **(PRODUCTS_ONLY if _is_transformer(model) else {}))
        finally:
            logging.getLogger().setLevel(level)
        made = onnx.load(temporary)
        made.producer_name = "collage-models"
        moved = f"{to}.tmp{os.getpid()}"
        with open(moved, "wb") as file:
            file.write(made.SerializeToString(deterministic=True))
        os.replace(moved, to)
    return to
