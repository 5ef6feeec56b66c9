"""A model as a deployment of Ray Serve. docs/serving.md explains threads and contexts.

    collage compile model.onnx -o model.collage --threads 1
    pip install "ray[serve]"
    COLLAGE_MODEL=$PWD/model.collage serve run ray_app:app

Over HTTP it takes the inputs by name as the bytes of a file that numpy.savez writes, and gives the outputs likewise; other deployments
call `handle.run.remote({"name": array})`.
"""

import asyncio
import io
import os
from concurrent.futures import ThreadPoolExecutor

import collage
import numpy as np
from ray import serve
from starlette.responses import Response

# Runs of one replica that go on at once: as many cores as Ray reserves for it, as the artifact was compiled for one thread.
CONTEXTS = int(os.environ.get("COLLAGE_CONTEXTS", 2))


class Model:
    def __init__(self, artifact, contexts=CONTEXTS):
        self.program = collage.load(artifact, contexts=contexts)
        self.threads = ThreadPoolExecutor(contexts)

    async def run(self, inputs):
        # Not on the replica's event loop, which takes requests meanwhile.
        return await asyncio.get_running_loop().run_in_executor(self.threads, self.program.run, inputs)

    async def __call__(self, request):
        body = await request.body()
        try:
            with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
                inputs = dict(arrays)
        except Exception as wrong:  # NumPy raises many kinds
            return Response(f"not what numpy.savez writes: {wrong}", 400)
        try:
            outputs = await self.run(inputs)
        except collage.Error as wrong:
            return Response(str(wrong), 400 if wrong.code == collage.ErrorCode.BAD_MODEL else 500)
        written = io.BytesIO()
        np.savez(written, **outputs)
        return Response(written.getvalue(), media_type="application/octet-stream")


deployment = serve.deployment(Model, num_replicas=1, max_ongoing_requests=CONTEXTS, ray_actor_options={"num_cpus": CONTEXTS})
app = deployment.bind(os.environ["COLLAGE_MODEL"])
