"""ONNX Runtime behind the interface that peer.py drives: load, set_inputs, infer, outputs."""

import numpy as np
import onnxruntime


class OnnxRuntimePeer:
    """Sequential execution, every graph optimisation, inputs and outputs bound once to buffers of ours."""

    version = f"onnxruntime {onnxruntime.__version__}"

    def __init__(self, path, threads, precision):
        if precision != "f32":
            raise ValueError(f"ONNX Runtime runs a model in the precision it has; {precision} is not available")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._binding = self._outputs = None

    def signature(self):
        def describe(values):
            return [{"name": v.name, "shape": list(v.shape), "type": v.type} for v in values]

        return describe(self._session.get_inputs()), describe(self._session.get_outputs())

    def set_inputs(self, arrays):
        names = [value.name for value in self._session.get_inputs()]
        self._inputs = [onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(a)) for a in arrays]
        self._binding = self._session.io_binding()
        for name, value in zip(names, self._inputs):
            self._binding.bind_ortvalue_input(name, value)
        names = [value.name for value in self._session.get_outputs()]
        for name in names:
            self._binding.bind_output(name, "cpu")
        self._session.run_with_iobinding(self._binding)
        self._outputs = self._binding.get_outputs()  # from now on every run writes into these
        self._binding.clear_binding_outputs()
        for name, value in zip(names, self._outputs):
            self._binding.bind_ortvalue_output(name, value)

    def infer(self):
        self._session.run_with_iobinding(self._binding)

    def outputs(self):
        return [(v.name, o.numpy()) for v, o in zip(self._session.get_outputs(), self._outputs)]
