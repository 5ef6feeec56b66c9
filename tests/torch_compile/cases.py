"""What the scripts of cases share: a register of them, eager beside compiled, and the run of all with what failed."""

import copy
import logging
import os
import tempfile
import traceback
import warnings

import torch_package  # noqa: F401, puts the built package on the path

import torch
from torch import nn

from collage.torch_backend import compile_fx

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def compiled(function, **options):
    """With options, so that the first call is Collage's already."""
    torch._dynamo.reset()
    return torch.compile(function, backend=compile_fx, options={"targets": "native", "effort": "fast"}, **options)


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


def main(names):
    """Runs the cases, or those of these names; gives the exit status."""
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
