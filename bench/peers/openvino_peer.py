"""OpenVINO behind the interface that peer.py drives: load, set_inputs, infer, throughput, outputs."""

import time

import numpy as np
import openvino


class OpenVinoPeer:
    """The CPU plug-in for lowest latency: one stream; or for throughput, with so many asynchronous requests as there are to be
    streams, where it chooses itself how many of its own these need. Its default precision here may be bf16, so it is always given."""

    version = f"openvino {openvino.__version__}"

    def __init__(self, path, threads, precision, shapes=None, streams=0):
        settings = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": threads}
        settings |= ({"PERFORMANCE_HINT": "THROUGHPUT", "PERFORMANCE_HINT_NUM_REQUESTS": streams} if streams
                     else {"PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1})
        core = openvino.Core()
        model = core.read_model(path)
        if shapes is not None:
            if len(shapes) != len(model.inputs):
                raise ValueError(f"the model has {len(model.inputs)} inputs, {len(shapes)} shapes are given")
            if any(port.get_partial_shape().is_dynamic for port in model.inputs):
                model.reshape(dict(enumerate(shapes)))
        self._model = core.compile_model(model, "CPU", settings)
        self._request = self._model.create_infer_request()
        self._queue = openvino.AsyncInferQueue(self._model, streams) if streams else None

    def signature(self):
        def describe(ports):
            return [{"name": self._name(p), "shape": [d.to_string() if d.is_dynamic else d.get_length()
                                                      for d in p.get_partial_shape()],
                     "type": p.get_element_type().get_type_name()} for p in ports]

        return describe(self._model.inputs), describe(self._model.outputs)

    def _name(self, port):
        """ONNX names survive as one of a port's several names; any of them identifies it."""
        return min(port.get_names(), key=len, default="")

    def set_inputs(self, arrays):
        self._arrays = [np.asarray(a, order="C") for a in arrays]  # shared with the request, so they must live on
        for request in [self._request, *(self._queue or ())]:
            for index, array in enumerate(self._arrays):
                request.set_input_tensor(index, openvino.Tensor(array, shared_memory=True))
        self.infer()

    def infer(self):
        self._request.infer(share_outputs=True)

    def throughput(self, seconds):
        count, width = 0, len(self._queue)
        for _ in range(width):  # untimed
            self._queue.start_async()
        self._queue.wait_all()
        start = time.perf_counter()
        while count < width or time.perf_counter() < start + seconds:
            self._queue.start_async()  # waits for a request that is idle
            count += 1
        self._queue.wait_all()
        return count, time.perf_counter() - start

    def outputs(self):
        return [(self._name(p), np.array(self._request.get_output_tensor(i).data))
                for i, p in enumerate(self._model.outputs)]
