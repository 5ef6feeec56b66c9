"""A model for the Python backend of the Triton Inference Server. docs/serving.md explains threads and contexts.

    collage compile model.onnx -o classifier/1/model.collage --threads 1

with this file beside the artifact and config.pbtxt in the folder above: classifier/config.pbtxt, classifier/1/model.py,
classifier/1/model.collage. Each instance is a process of its own that runs one request at a time; the instances share the weights.
"""

import os

import collage
import triton_python_backend_utils as pb_utils

ARTIFACT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.collage")
TYPES = {"bool": "TYPE_BOOL", "float16": "TYPE_FP16", "float32": "TYPE_FP32", "float64": "TYPE_FP64"}


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        """Inputs and outputs as the artifact has them, so config.pbtxt need not name them."""
        program = collage.load(ARTIFACT, contexts=1)
        tensor = lambda info: {"name": info.name, "data_type": TYPES.get(info.dtype, f"TYPE_{info.dtype.upper()}"), "dims": list(info.shape)}
        for info in program.inputs:
            config.add_input(tensor(info))
        for info in program.outputs:
            config.add_output(tensor(info))
        config.set_max_batch_size(0)  # the batch is a part of the artifact's shapes
        return config

    def initialize(self, args):
        self.program = collage.load(ARTIFACT, contexts=1)

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        try:
            inputs = {info.name: pb_utils.get_input_tensor_by_name(request, info.name).as_numpy() for info in self.program.inputs}
            outputs = self.program.run(inputs)
        except collage.Error as wrong:
            return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(str(wrong)))
        return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor(name, array) for name, array in outputs.items()])
