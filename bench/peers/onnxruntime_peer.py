"""ONNX Runtime behind the interface that peer.py drives: load, set_inputs, infer, throughput, outputs."""

import numpy as np
import onnxruntime
from throughput import concurrently


class OnnxRuntimePeer:
    """Sequential execution, every graph optimisation, inputs and outputs bound once to buffers of ours. Streams are sessions,
    each with its share of the threads."""

    version = f"onnxruntime {onnxruntime.__version__}"

    def __init__(self, path, threads, precision, shapes=None, streams=0):
        if precision != "f32":
            raise ValueError(f"ONNX Runtime runs a model in the precision it has; {precision} is not available")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = max(1, threads // max(1, streams))
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        open_session = lambda: onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._session = open_session()
        if sizes := self._symbolic_sizes(shapes):
            for name, size in sizes.items():
                options.add_free_dimension_override_by_name(name, size)
            self._session = open_session()
        self._binding = self._outputs = None
        self._others = [OnnxRuntimePeer(path, options.intra_op_num_threads, precision, shapes) for _ in range(1, streams)]

    def _symbolic_sizes(self, shapes):
        """What the given shapes say of the names that dimensions of inputs have."""
        inputs = self._session.get_inputs()
        if shapes is None:
            return {}
        if [len(v.shape) for v in inputs] != [len(shape) for shape in shapes]:
            raise ValueError(f"the model's inputs are {[list(v.shape) for v in inputs]}, given are {shapes}")
        return {name: size for v, shape in zip(inputs, shapes) for name, size in zip(v.shape, shape)
                if isinstance(name, str)}

    def signature(self):
        def describe(values):
            return [{"name": v.name, "shape": list(v.shape), "type": v.type} for v in values]

        return describe(self._session.get_inputs()), describe(self._session.get_outputs())

    def set_inputs(self, arrays):
        for other in self._others:
            other.set_inputs(arrays)
        names = [value.name for value in self._session.get_inputs()]
        self._inputs = [onnxruntime.OrtValue.ortvalue_from_numpy(np.asarray(a, order="C")) for a in arrays]
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

    def throughput(self, seconds):
        return concurrently([self.infer] + [other.infer for other in self._others], seconds)

    def outputs(self):
        return [(v.name, o.numpy()) for v, o in zip(self._session.get_outputs(), self._outputs)]
