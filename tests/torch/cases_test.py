"""What compilers' backends get wrong, through torch.compile(backend=collage) against eager: writes, aliases, overlaps, strides, random state, weights
that change, custom operators, threads, processes, modes of PyTorch, exported programs.

    build/torch-env/bin/python tests/torch/cases_test.py [NAME…]
"""

import concurrent.futures
import copy
import io
import logging
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import traceback
import warnings

import torch_package

import torch
from torch import nn
from torch.nn import functional as F

import collage
from collage.torch_backend import compile_fx

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def compiled(function, **options):
    torch._dynamo.reset()
    return torch.compile(function, backend=compile_fx, **options)


def flat(value):
    return torch.utils._pytree.tree_leaves(value)


def same(got, wanted, tolerance=2e-5):
    got, wanted = flat(got), flat(wanted)
    assert len(got) == len(wanted), (len(got), len(wanted))
    for a, b in zip(got, wanted):
        if not isinstance(b, torch.Tensor):
            assert a == b, (a, b)
            continue
        assert (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride()), (a.shape, a.dtype, a.stride(), b.shape, b.dtype, b.stride())
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def both(function, *args, tolerance=2e-5, calls=2, **options):
    """Compiled and eager on the same values, several times over, inputs compared afterwards."""
    ours = compiled(function, **options)
    with torch.no_grad():
        for _ in range(calls):
            given, kept = copy.deepcopy(args), copy.deepcopy(args)
            same(ours(*given), function(*kept), tolerance)
            same(given, kept, tolerance)
    return ours


def mlp(*sizes, last=nn.Identity):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.GELU()]
    return nn.Sequential(*layers, last()).eval()


# Writes to inputs.


@case
def add_in_place():
    both(lambda x, y: x.add_(y) * 2, torch.randn(4, 5), torch.randn(5))


@case
def write_through_a_slice():
    def f(x, y):
        x[:, 1:3] = y
        return x.sum(1)

    both(f, torch.randn(4, 5), torch.randn(4, 2))


@case
def write_through_a_transpose():
    both(lambda x: x.t().mul_(3).sum(0), torch.randn(3, 4))


@case
def out_argument():
    both(lambda x, y, out: torch.add(x, y, out=out) + 1, torch.randn(3), torch.randn(3), torch.zeros(3))


@case
def copy_into_an_input():
    both(lambda x, y: x.copy_(y.relu()), torch.randn(3, 3), torch.randn(3, 3))


@case
def write_without_a_result():
    def f(x):
        x.mul_(2)

    both(f, torch.randn(7))


@case
def dropout_of_eval_is_the_input():
    both(lambda x: F.dropout(x, 0.5, False).add_(1), torch.randn(6))


@case
def moving_average():
    both(lambda mean, x: mean.lerp_(x, 0.1) + 0, torch.randn(6), torch.randn(6))


@case
def fill_with_a_mask():
    both(lambda x, mask: x.masked_fill_(mask, -1.0).exp(), torch.randn(6), torch.tensor([True, False] * 3))


@case
def index_put_into_an_input():
    def f(x, i, v):
        x[i] = v
        return x * 1

    both(f, torch.randn(8, 3), torch.tensor([1, 5]), torch.randn(2, 3))


@case
def cache_written_at_a_position():
    def f(cache, x, at):
        cache.index_copy_(1, at, x)
        return cache.sum(1)

    both(f, torch.zeros(2, 6, 3), torch.randn(2, 1, 3), torch.tensor([4]))


# Buffers and weights.


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        self.count += 1
        return self.layer(x) * self.count


def twins(make):
    torch.manual_seed(3)
    first = make()
    second = make()
    second.load_state_dict(first.state_dict())
    return first, second


@case
def buffer_that_counts():
    ours, eager = twins(Counter)
    fast = compiled(ours)
    with torch.no_grad():
        for _ in range(4):
            x = torch.randn(2, 4)
            same(fast(x), eager(x))
            same(ours.count, eager.count)


@case
def batch_norm_of_training():
    ours, eager = twins(lambda: nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.ReLU()))
    fast = compiled(ours)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(3, 2, 9)
            same(fast(x), eager(x))
    same(list(ours.buffers()), list(eager.buffers()))


@case
def weight_of_an_optimiser():
    model = mlp(6, 8, 3)
    fast, x = compiled(model), torch.randn(4, 6)
    optimiser = torch.optim.SGD(model.parameters(), 0.5)
    for _ in range(3):
        with torch.no_grad():
            same(fast(x), model(x))
        model(x).pow(2).sum().backward()
        optimiser.step()
        optimiser.zero_grad()


@case
def weight_behind_versions():
    model, x = mlp(8, 16, 4), torch.randn(3, 8)
    fast = compiled(model)
    with torch.no_grad():
        fast(x)
        model[0].weight.data.mul_(2)
        same(fast(x), model(x))
        model[0].bias.detach().numpy()[...] = 1
        same(fast(x), model(x))
        model[2].weight.data = torch.randn(4, 16)
        same(fast(x), model(x))


@case
def weights_that_change_every_call():
    model, x = mlp(8, 8), torch.randn(2, 8)
    fast = compiled(model)
    with torch.no_grad():
        for i in range(8):
            model[0].weight.add_(0.1)
            same(fast(x), model(x))


@case
def state_dict_loaded():
    model, other, x = mlp(8, 8), mlp(8, 8), torch.randn(2, 8)
    fast = compiled(model)
    with torch.no_grad():
        fast(x)
        model.load_state_dict(other.state_dict())
        same(fast(x), other(x))
        model.load_state_dict({k: v.clone() * 2 for k, v in other.state_dict().items()}, assign=True)
        same(fast(x), model(x))


@case
def layer_replaced():
    model, x = mlp(8, 8, 4), torch.randn(2, 8)
    fast = compiled(model)
    with torch.no_grad():
        same(fast(x), model(x))
        model[2] = nn.Linear(8, 5)
        same(fast(x), model(x))


@case
def shared_weights():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(11, 6)
            self.head = nn.Linear(6, 11, bias=False)
            self.head.weight = self.table.weight

        def forward(self, x):
            return self.head(self.table(x))

    model = Tied().eval()
    both(lambda x: model(x), torch.tensor([[1, 4, 10]]))


@case
def sparse_weight():
    weight = torch.randn(6, 6).tril()[::2]  # not dense: an input
    both(lambda x: x @ weight.t(), torch.randn(2, 6))


# Aliases, overlaps, strides.


@case
def result_is_an_input():
    ours = compiled(lambda x, y: (x, y + 1))
    x = torch.randn(3)
    with torch.no_grad():
        result = ours(x, torch.randn(3))
    assert result[0] is x or result[0].data_ptr() == x.data_ptr()


@case
def result_is_a_view_of_an_input():
    ours = compiled(lambda x: (x[1:], x.exp()))
    x = torch.zeros(4)
    with torch.no_grad():
        ours(x)[0].add_(1)
    same(x, torch.tensor([0.0, 1, 1, 1]))


@case
def results_that_share_memory():
    ours = compiled(lambda x: (lambda y: (y, y[0], y.view(-1)))(x * 2))
    with torch.no_grad():
        a, b, c = ours(torch.ones(2, 3))
    a.zero_()
    same([b, c], [torch.zeros(3), torch.zeros(6)])


@case
def results_that_are_copies():
    ours = compiled(lambda x: (lambda y: (y, y.clone()))(x * 2))
    with torch.no_grad():
        a, b = ours(torch.ones(2, 3))
    a.zero_()
    same(b, torch.full((2, 3), 2.0))


@case
def result_of_a_constant():
    ours = both(lambda x: (x + 1, torch.ones(3), torch.arange(4)), torch.randn(2))
    with torch.no_grad():
        ours(torch.randn(2))[1].zero_()
        same(ours(torch.randn(2))[1], torch.ones(3))


@case
def results_are_new_each_time():
    ours = compiled(lambda x: x * 2)
    with torch.no_grad():
        first = ours(torch.ones(3))
        second = ours(torch.full((3,), 5.0))
    same([first, second], [torch.full((3,), 2.0), torch.full((3,), 10.0)])


@case
def overlapping_inputs():
    def f(x, y):
        x.mul_(2)
        return x + y

    ours, a, b = compiled(f), torch.ones(8), torch.ones(8)
    with torch.no_grad():
        ours(torch.ones(4), torch.ones(4))
        same(ours(a[:4], a[2:6]), f(b[:4], b[2:6]))
    same(a, b)


@case
def the_same_input_twice():
    def f(x, y):
        x.add_(1)
        return x * y

    ours, a, b = compiled(f), torch.randn(4), None
    b = a.clone()
    with torch.no_grad():
        same(ours(a, a), f(b, b))
    same(a, b)


@case
def channels_last():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2)).eval().to(memory_format=torch.channels_last)
    both(lambda x: model(x), torch.randn(2, 3, 12, 12).to(memory_format=torch.channels_last))


@case
def transposed_result():
    both(lambda x: ((x + 1).t(), (x * 2).permute(1, 0)), torch.randn(3, 5))


@case
def expanded_result():
    both(lambda x: x.exp().expand(4, 3), torch.randn(1, 3))


@case
def strided_inputs():
    both(lambda x, y: x * 2 + y, torch.randn(8, 6)[::2, 1:4], torch.randn(3, 4).t())


@case
def input_of_stride_zero():
    both(lambda x, y: x + y, torch.randn(1, 3).expand(4, 3), torch.randn(4, 3))


@case
def numbers_of_one_dimension():
    both(lambda x: (x.sum(), x[0], x.argmax(), x > 0), torch.randn(5))


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


@case
def gradients():
    ours, eager = twins(lambda: mlp(6, 8, 3))
    fast = compiled(ours)
    x = torch.randn(4, 6)
    fast(x).pow(2).sum().backward()
    eager(x).pow(2).sum().backward()
    same([p.grad for p in ours.parameters()], [p.grad for p in eager.parameters()])


@case
def gradients_of_a_resnet():
    import torchvision

    ours, eager = twins(lambda: torchvision.models.resnet18(weights=None))
    fast, x, y = compiled(ours), torch.randn(2, 3, 64, 64), torch.tensor([1, 7])
    for model, call in ((ours, fast), (eager, eager)):
        F.cross_entropy(call(x), y).backward()
    same([p.grad for p in ours.parameters()], [p.grad for p in eager.parameters()], 1e-4)
    same(list(ours.buffers()), list(eager.buffers()))


@case
def gradients_of_a_bert_layer():
    ours, eager = twins(lambda: nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True))
    fast, x = compiled(ours), torch.randn(2, 7, 32)
    for model, call in ((ours, fast), (eager, eager)):
        call(x).pow(2).mean().backward()
    same([p.grad for p in ours.parameters()], [p.grad for p in eager.parameters()])


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


def main(names):
    os.environ.setdefault("COLLAGE_CACHE", tempfile.mkdtemp(prefix="collage-cases-"))
    warnings.simplefilter("ignore")
    logging.getLogger("collage.torch").setLevel(logging.ERROR)
    failed = 0
    for name in names or CASES:
        torch.manual_seed(0)
        try:
            CASES[name]()
            print(f"passed {name}", flush=True)
        except BaseException as wrong:  # noqa: B902, a test's end is told, whatever it is
            failed += 1
            traceback.print_exc()
            print(f"FAILED {name}: {' '.join(str(wrong).split())[:300]}", flush=True)
    print(f"{len(names or CASES) - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
