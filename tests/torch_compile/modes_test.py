"""Random state, operators that Collage lacks, modes of PyTorch, threads, processes, files and exported programs: through
torch.compile(backend=collage) against eager.

    build/torch-env/bin/python tests/torch_compile/modes_test.py [NAME…]
"""

import concurrent.futures
import io
import logging
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile

from cases import Counter, both, case, compiled, main, mlp, same, twins

import torch
import torch_package
from torch import nn
from torch.nn import functional as F

import collage
from collage.torch_backend import compile_fx

# Random state.


@case
def dropout_repeats_with_a_seed():
    ours = compiled(lambda x: F.dropout(x, 0.5, True) * 2)
    with torch.no_grad():
        torch.manual_seed(5)
        first, second = ours(torch.ones(500)), ours(torch.ones(500))
        torch.manual_seed(5)
        again = ours(torch.ones(500))
    same(again, first)
    assert not torch.equal(first, second)


@case
def random_numbers_as_eager_draws_them():
    def f(x):
        return x + torch.randn(3), torch.rand(2) * 2, torch.bernoulli(torch.full((9,), 0.5)), torch.randint(0, 9, (4,))

    ours = compiled(f)
    with torch.no_grad():
        torch.manual_seed(1)
        got = ours(torch.ones(3))
        torch.manual_seed(1)
        same(got, f(torch.ones(3)))


# Operators that Collage does not have.


@torch.library.custom_op("collage_tests::shifted", mutates_args=())
def shifted(x: torch.Tensor, by: float) -> torch.Tensor:
    return x.flip(0) + by


shifted.register_fake(lambda x, by: torch.empty_like(x))


@torch.library.custom_op("collage_tests::shift_", mutates_args={"x"})
def shift_(x: torch.Tensor, by: float) -> None:
    x.add_(by)


@case
def custom_operator():
    both(lambda x: shifted(x.exp(), 2.0).relu() + x, torch.randn(4))


@case
def custom_operator_that_writes():
    def f(x):
        shift_(x, 2.0)
        return x * 3

    both(f, torch.randn(4))


@case
def complex_numbers():
    both(lambda x: (torch.fft.rfft(x).abs() + 1).log() * 2, torch.randn(3, 16))
    both(lambda x: torch.view_as_complex(x) * 2, torch.randn(3, 2))


@case
def shapes_that_values_decide():
    both(lambda x: (x[x > 0].sum(), torch.nonzero(x > 0).shape[0], x.exp()), torch.randn(12))


@case
def condition():
    both(lambda x: torch.cond(x.sum() > 0, lambda v: v.sin() * 2, lambda v: v.cos(), (x,)).exp(), torch.randn(5))


@case
def tensors_without_elements():
    both(lambda x: (x.relu() * 2, x.sum(0), torch.cat([x, torch.ones(2, 3)])), torch.randn(0, 3))


@case
def masked_rows_of_attention():
    mask = torch.ones(6, 6, dtype=torch.bool).tril()
    mask[2] = False
    both(lambda q, k: F.scaled_dot_product_attention(q, k, k, attn_mask=mask), torch.randn(1, 2, 6, 8), torch.randn(1, 2, 6, 8))
    both(lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m), torch.randn(1, 2, 6, 8),
         torch.zeros(6, 6).masked_fill(~mask, float("-inf")))


@case
def heads_that_share_keys():
    both(lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True), torch.randn(1, 4, 6, 8), torch.randn(1, 2, 6, 8))


# Modes.


@case
def inference_mode():
    model, x = mlp(8, 4), torch.randn(2, 8)
    fast = compiled(model)
    with torch.inference_mode():
        for _ in range(2):
            same(fast(x), model(x))
    with torch.no_grad():
        same(fast(x), model(x))


@case
def autocast():
    model, x = mlp(32, 64, 8), torch.randn(4, 32)
    fast = compiled(model)
    with torch.no_grad():
        with torch.autocast("cpu", torch.bfloat16):
            same(fast(x), model(x), 3e-2)
        same(fast(x), model(x))


@case
def half_precision():
    model, x = mlp(32, 64, 8).bfloat16(), torch.randn(4, 32).bfloat16()
    both(lambda x: model(x), x, tolerance=3e-2)


def same_gradients(make, loss, tolerance=2e-5):
    """Of the loss that `loss` makes of a model's call, and the buffers after it."""
    ours, eager = twins(make)
    for model, call in ((ours, compiled(ours)), (eager, eager)):
        loss(call).backward()
    same([p.grad for p in ours.parameters()], [p.grad for p in eager.parameters()], tolerance)
    same(list(ours.buffers()), list(eager.buffers()))


@case
def gradients():
    x = torch.randn(4, 6)
    same_gradients(lambda: mlp(6, 8, 3), lambda call: call(x).pow(2).sum())


@case
def gradients_of_a_resnet():
    import torchvision

    x, y = torch.randn(2, 3, 64, 64), torch.tensor([1, 7])
    same_gradients(lambda: torchvision.models.resnet18(weights=None), lambda call: F.cross_entropy(call(x), y), 1e-4)


@case
def gradients_of_a_bert_layer():
    x = torch.randn(2, 7, 32)
    same_gradients(lambda: nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True), lambda call: call(x).pow(2).mean())


@case
def nested_compile():
    inner = torch.compile(lambda x: x.relu() + 1, backend=compile_fx)
    both(lambda x: inner(x * 2) * 3, torch.randn(4))


@case
def full_graph_and_varying_sizes():
    weight = torch.randn(6, 4)
    ours = compiled(lambda x: torch.softmax(x @ weight, -1).sum(0), dynamic=True, fullgraph=True)
    with torch.no_grad():
        for n in (2, 3, 9, 64):
            x = torch.randn(n, 6)
            same(ours(x), torch.softmax(x @ weight, -1).sum(0))


@case
def sizes_that_are_part_of_values():
    ours = compiled(lambda x: x.sum(0) / x.shape[0] + torch.arange(x.shape[1]), dynamic=True)
    with torch.no_grad():
        for n, m in ((2, 3), (5, 4), (7, 9)):
            x = torch.randn(n, m)
            same(ours(x), x.sum(0) / n + torch.arange(m))


@case
def vmap():
    both(lambda x, y: torch.vmap(lambda a, b: (a * b).sum())(x, y), torch.randn(3, 4), torch.randn(3, 4))


@case
def double_precision():
    both(lambda x: (x @ x.t()).softmax(-1), torch.randn(5, 6, dtype=torch.float64), tolerance=1e-10)


# Threads, processes, files.


@case
def threads():
    model = mlp(16, 32, 4)
    fast = compiled(model)

    def one(seed):
        with torch.no_grad():
            x = torch.randn(3, 16, generator=torch.Generator().manual_seed(seed))
            same(fast(x), model(x))
        return 1

    one(0)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(one, range(100))) == 100


@case
def forked_process():
    model, x = mlp(16, 8), torch.randn(2, 16)
    fast = compiled(model)
    with torch.no_grad():
        wanted = fast(x)

    def child(queue):
        with torch.no_grad():
            queue.put(float((fast(x) - wanted).abs().max()))

    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    assert queue.get(timeout=60) < 1e-6
    process.join(10)


@case
def pickled_model():
    model, x = mlp(8, 4), torch.randn(2, 8)
    fast = compiled(model)
    with torch.no_grad():
        wanted = fast(x)
        again = pickle.loads(pickle.dumps(model))
        same(compiled(again)(x), wanted)
        buffer = io.BytesIO()
        torch.save(model.state_dict(), buffer)
        buffer.seek(0)
        again.load_state_dict(torch.load(buffer))
        same(again(x), model(x))


@case
def exported_program():
    model, x = mlp(8, 16, 4), torch.randn(2, 8)
    exported = torch.export.export(model, (x,))
    program = collage.from_exported(exported).compile(targets="native")
    with torch.no_grad():
        same(program(x), model(x))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mlp.collage")
            program.save(path)
            same(collage.load(path)(x), model(x))
        fast = compiled(exported.module())
        same(fast(x), model(x))


@case
def exported_program_with_dimensions():
    model = mlp(8, 4)
    exported = torch.export.export(model, (torch.randn(3, 8),), dynamic_shapes=({0: torch.export.Dim("batch")},))
    for batch in (1, 5):
        x = torch.randn(batch, 8)
        with torch.no_grad():
            same(collage.from_exported(exported, shapes={"input": (batch, 8)}).compile(targets="native")(x), model(x))


@case
def exported_program_that_is_refused():
    for module, word in ((Counter(), "writes"), (Random(), "rand")):
        try:
            collage.from_exported(torch.export.export(module, (torch.randn(2, 4),)))
        except collage.Error as wrong:
            assert word in str(wrong), wrong
        else:
            raise AssertionError("it was taken")


class Random(nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


@case
def what_stays_in_pytorch_is_told():
    told = []
    handler = type("Keep", (logging.Handler,), {"emit": lambda self, record: told.append(record.getMessage())})()
    logger = logging.getLogger("collage.torch")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        both(lambda x: torch.fft.rfft(x.exp()).abs() + 1, torch.randn(8))
        assert any("_fft_r2c" in line for line in told), told
        mlp(4, 4)  # and gradients
        compiled(mlp(4, 4))(torch.randn(2, 4))
        assert any("gradients" in line for line in told), told
    finally:
        logger.removeHandler(handler)


@case
def nothing_is_printed_at_the_end():
    script = """
import torch
from collage.torch_backend import compile_fx
f = torch.compile(lambda x: x * 2 + 1, backend=compile_fx)
with torch.no_grad(): assert f(torch.ones(3)).tolist() == [3, 3, 3]
"""
    path = os.pathsep.join([os.path.join(torch_package.BUILD, "python"), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", ""), ran


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
