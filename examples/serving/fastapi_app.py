"""A model as a service: FastAPI around an artifact. docs/serving.md explains threads and contexts.

    collage compile model.onnx -o model.collage --threads 1
    pip install fastapi uvicorn
    COLLAGE_MODEL=model.collage uvicorn fastapi_app:app

With COLLAGE_TUNE=model.onnx it measures in the background, and goes on with each faster plan that this finds.

POST /run takes the inputs by name as the bytes of a file that numpy.savez writes, and gives the outputs likewise. GET /health describes both.
"""

import asyncio
import contextlib
import functools
import io
import os

import anyio
import collage
import numpy as np
from fastapi import FastAPI, HTTPException, Request, Response

# Runs that go on at once: one for each core, as the artifact was compiled for one thread.
CONTEXTS = int(os.environ.get("COLLAGE_CONTEXTS") or len(os.sched_getaffinity(0)))


def go_on_with(program, artifact, better):
    """Writes a faster program over the artifact; requests from now on run it, as many at once as before."""
    beside = artifact.removesuffix(".collage") + ".new.collage"
    better.save(beside)
    os.replace(beside, artifact)
    program.replace(collage.load(artifact, contexts=CONTEXTS))


@contextlib.asynccontextmanager
async def lifespan(app):
    artifact, model = os.environ["COLLAGE_MODEL"], os.environ.get("COLLAGE_TUNE")
    program = app.state.program = await asyncio.to_thread(collage.load, artifact, contexts=CONTEXTS)
    # Requests beyond that wait here, and not in threads.
    app.state.turns = anyio.CapacityLimiter(CONTEXTS)
    tuning = model and collage.load(model).tune(functools.partial(go_on_with, program, artifact), threads=1)
    yield
    if tuning:
        await asyncio.to_thread(tuning.stop)


app = FastAPI(lifespan=lifespan)


class NoArrays(ValueError):
    pass


def answer(program, body):
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
            inputs = dict(arrays)
    except Exception as wrong:  # NumPy raises many kinds
        raise NoArrays(f"not what numpy.savez writes: {wrong}") from wrong
    outputs = program.run(inputs)
    written = io.BytesIO()
    np.savez(written, **outputs)
    return written.getvalue()


@app.post("/run")
async def run(request: Request):
    body = await request.body()
    try:
        written = await anyio.to_thread.run_sync(answer, request.app.state.program, body, limiter=request.app.state.turns)
    except collage.Error as wrong:
        raise HTTPException(400 if wrong.code == collage.ErrorCode.BAD_MODEL else 500, str(wrong)) from wrong
    except NoArrays as wrong:
        raise HTTPException(400, str(wrong)) from wrong
    return Response(written, media_type="application/octet-stream")


@app.get("/health")
def health(request: Request):
    describe = lambda infos: {info.name: {"shape": list(info.shape), "dtype": info.dtype} for info in infos}
    program = request.app.state.program
    return {"inputs": describe(program.inputs), "outputs": describe(program.outputs), "contexts": CONTEXTS}
