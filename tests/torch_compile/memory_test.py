"""Writes to inputs, buffers and weights that change, aliases, overlaps and strides: through torch.compile(backend=collage) against eager.

    build/torch-env/bin/python tests/torch_compile/memory_test.py [NAME…]
"""

import sys

from cases import Counter, both, case, compiled, main, mlp, same, twins

import torch
from torch import nn
from torch.nn import functional as F

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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
