"""The examples of docs/serving.md, which are examples/serving: many requests at once, each with its own answer, and what is refused.

    python tests/python/serving_test.py [CHECK...]

FastAPI is the real one, without a socket. Of Ray Serve and of Triton's Python backend the example's class is tried, beside
stand-ins of what it calls where they are not installed. Prints "N passed, 0 failed" or what went wrong.
"""

import asyncio
import contextlib
import importlib.util
import io
import os
import shutil
import sys
import types

import numpy as np
import onnx

import built_package
import tiny_models

if built_package.BUILT:
    import collage

EXAMPLES = os.path.join(built_package.ROOT, "examples", "serving")
REQUESTS = 60


class Saved:
    """A model as an artifact for one thread, and requests with their answers."""

    def __init__(self, folder):
        self.folder, self.path = folder, os.path.join(folder, "model.collage")
        model = os.path.join(folder, "net.onnx")
        onnx.save(tiny_models.small_net(), model)
        program = collage.load(model).compile(targets="reference", threads=1, database=os.path.join(folder, "costs.db"))
        program.save(self.path)
        self.program = program
        self.images = np.random.default_rng(0).random((REQUESTS, 1, 3, 12, 12), np.float32)
        self.scores = [program(image) for image in self.images]

    def check(self, answers):
        assert len(answers) == REQUESTS
        for index, (answer, expected) in enumerate(zip(answers, self.scores)):
            np.testing.assert_array_equal(answer, expected, err_msg=f"request {index}")


def packed(**arrays):
    written = io.BytesIO()
    np.savez(written, **arrays)
    return written.getvalue()


def unpacked(body):
    with np.load(io.BytesIO(body)) as arrays:
        return dict(arrays)["scores"]


@contextlib.contextmanager
def example(path, environment=None, modules=None):
    """An example as a module, with these variables and stand-ins while it is imported."""
    kept = {name: sys.modules.get(name) for name in modules or {}}
    os.environ.update(environment or {})
    sys.modules.update(modules or {})
    try:
        spec = importlib.util.spec_from_file_location("example", path)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        yield made
    finally:
        for name, module in kept.items():
            sys.modules.pop(name) if module is None else sys.modules.update({name: module})
        for name in environment or {}:
            del os.environ[name]


def check_fastapi(saved):
    import httpx

    async def serve(app, go_on_with):
        async with app.router.lifespan_context(app):
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://local") as client:
                health = (await client.get("/health")).json()
                assert health == {"inputs": {"image": {"shape": [1, 3, 12, 12], "dtype": "float32"}},
                                  "outputs": {"scores": {"shape": [1, 10], "dtype": "float32"}}, "contexts": 3}, health
                posted = await asyncio.gather(*(client.post("/run", content=packed(image=image)) for image in saved.images))
                assert {answer.status_code for answer in posted} == {200}, posted
                saved.check([unpacked(answer.content) for answer in posted])
                for body, words in ((packed(image=np.zeros((1, 3, 12, 13), np.float32)), "(1, 3, 12, 12)"), (packed(x=saved.images[0]), "missing: image"),
                                    (b"no arrays", "not what numpy.savez writes"), (b"", "not what numpy.savez writes"), (packed(image=np.array([{}])), "not what numpy.savez writes")):
                    refused = await client.post("/run", content=body)
                    assert refused.status_code == 400 and words in refused.json()["detail"], (refused.status_code, refused.text)
                # What was refused keeps no context. Requests that come while the program is replaced have their answers.
                before = os.stat(saved.path).st_ino
                *posted, _ = await asyncio.gather(*(client.post("/run", content=packed(image=image)) for image in saved.images),
                                                  asyncio.to_thread(go_on_with, app.state.program, saved.path, saved.program))
                saved.check([unpacked(answer.content) for answer in posted])
                assert os.stat(saved.path).st_ino != before and os.listdir(saved.folder).count("model.new.collage") == 0
                saved.check([unpacked((await client.post("/run", content=packed(image=image))).content) for image in saved.images])

    with example(os.path.join(EXAMPLES, "fastapi_app.py"), {"COLLAGE_MODEL": saved.path, "COLLAGE_CONTEXTS": "3"}) as module:
        asyncio.run(serve(module.app, module.go_on_with))


class Request:
    """As much of Starlette's as an example reads."""

    def __init__(self, body):
        self._body = body

    async def body(self):
        return self._body


def check_ray(saved):
    stated = {}

    def deployment(made, **options):
        stated.update(options)
        return types.SimpleNamespace(bind=lambda *arguments: (made, arguments))

    async def serve(model):
        answers = await asyncio.gather(*(model(Request(packed(image=image))) for image in saved.images))
        saved.check([unpacked(answer.body) for answer in answers])
        saved.check([(await model.run({"image": image}))["scores"] for image in saved.images])
        for body, words in ((packed(image=np.zeros((2, 2), np.float32)), b"(1, 3, 12, 12)"), (b"no arrays", b"not what numpy.savez writes"), (b"PK", b"not what numpy.savez writes")):
            refused = await model(Request(body))
            assert refused.status_code == 400 and words in refused.body, refused.body

    serve_module = types.SimpleNamespace(deployment=deployment)
    stand_in = {"ray": types.SimpleNamespace(serve=serve_module), "ray.serve": serve_module}
    with example(os.path.join(EXAMPLES, "ray_app.py"), {"COLLAGE_MODEL": saved.path, "COLLAGE_CONTEXTS": "3"}, stand_in) as module:
        made, arguments = module.app
        # As many requests at a time as there are contexts, and as many cores.
        assert stated["max_ongoing_requests"] == 3 and stated["ray_actor_options"] == {"num_cpus": 3}, stated
        asyncio.run(serve(made(*arguments)))


class TritonConfig:
    def __init__(self):
        self.inputs, self.outputs, self.batch = [], [], None
        self.add_input, self.add_output = self.inputs.append, self.outputs.append

    def set_max_batch_size(self, size):
        self.batch = size


def triton_stand_in():
    class Tensor:
        def __init__(self, name, array):
            self.name, self.array = name, array

        def as_numpy(self):
            return self.array

    class InferenceResponse:
        def __init__(self, output_tensors, error=None):
            self.output_tensors, self.error = output_tensors, error

    by_name = lambda request, name: next((tensor for tensor in request if tensor.name == name), None)
    return types.SimpleNamespace(Tensor=Tensor, InferenceResponse=InferenceResponse, TritonError=str, get_input_tensor_by_name=by_name)


def check_triton(saved):
    # A model repository, as the example's comment lays it out.
    version = shutil.copytree(os.path.join(EXAMPLES, "triton"), os.path.join(saved.folder, "classifier")) + "/1"
    shutil.copy(saved.path, version)
    utils = triton_stand_in()
    with example(os.path.join(version, "model.py"), modules={"triton_python_backend_utils": utils}) as module:
        config = module.TritonPythonModel.auto_complete_config(TritonConfig())
        assert config.inputs == [{"name": "image", "data_type": "TYPE_FP32", "dims": [1, 3, 12, 12]}] and config.batch == 0, vars(config)
        assert config.outputs == [{"name": "scores", "data_type": "TYPE_FP32", "dims": [1, 10]}], config.outputs
        model = module.TritonPythonModel()
        model.initialize({"model_repository": os.path.dirname(version), "model_version": "1"})
        responses = model.execute([[utils.Tensor("image", image)] for image in saved.images])
        assert [response.error for response in responses] == [None] * REQUESTS
        saved.check([response.output_tensors[0].as_numpy() for response in responses])
        # One that is wrong has an error of its own, and those beside it their answers.
        wrong, right = model.execute([[utils.Tensor("image", saved.images[0][0])], [utils.Tensor("image", saved.images[1])]])
        assert "(1, 3, 12, 12)" in wrong.error and wrong.output_tensors == [], wrong.error
        np.testing.assert_array_equal(right.output_tensors[0].as_numpy(), saved.scores[1])


if __name__ == "__main__":
    sys.exit(built_package.run([(check.__name__, lambda folder, check=check: check(Saved(folder)))
                                for check in (check_fastapi, check_ray, check_triton)], sys.argv[1:]))
