"""PyTorch's operator database through torch.compile(backend=collage): every operator against eager, values, dtypes, strides and written inputs.

    build/torch-env/bin/python tests/torch_compile/opinfo_test.py [--samples 2] [--dtypes float32,int64] [--shard 0/2] [--json FILE] [NAME…]

Prints what differs, and a table of how many run in Collage and how many stay in PyTorch. Random operators are compared with the same seed.
"""

import argparse
import collections
import json
import os
import sys
import tempfile
import warnings

import torch_package  # noqa: F401, puts the built package on the path
from told import Told

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_map

from collage.torch_backend import compile_fx

# What eager itself does not give twice: memory that nobody wrote.
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
# Of equal elements eager itself does not promise which comes first: values are compared, and that the indices lead to them.
TIES = {"topk", "sort", "argsort"}
# Numbers of low quality on both sides: what eager gives is no better than this.
LOOSE = {torch.float16: (2e-2, 2e-2), torch.bfloat16: (6e-2, 6e-2), torch.float32: (2e-4, 2e-5), torch.complex64: (2e-4, 2e-5)}


def cloned(value):
    return tree_map(lambda x: x.detach().clone() if isinstance(x, torch.Tensor) else x, value)


def difference(got, wanted, what="result"):
    """What is wrong, in words, or nothing."""
    got, wanted = tree_flatten(got)[0], tree_flatten(wanted)[0]
    if len(got) != len(wanted):
        return f"{len(got)} {what}s, not {len(wanted)}"
    for a, b in zip(got, wanted):
        if not isinstance(b, torch.Tensor):
            if type(a) is not type(b) or (a != b and a == a):
                return f"{what}: {a}, not {b}"
            continue
        if not isinstance(a, torch.Tensor) or a.shape != b.shape or a.dtype != b.dtype:
            return f"{what}: {getattr(a, 'dtype', type(a))} {tuple(getattr(a, 'shape', ()))}, not {b.dtype} {tuple(b.shape)}"
        if a.layout is torch.strided and a.numel() and a.stride() != b.stride():
            return f"{what}: strides {a.stride()}, not {b.stride()} of {tuple(b.shape)}"
        rtol, atol = LOOSE.get(b.dtype, (1e-6, 1e-7))
        try:
            torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as wrong:
            return f"{what}: " + " ".join(str(wrong).split())[:200]
    return ""


def ordered(x, *results):
    """Results with the values that their indices lead to in place of these."""
    order = results[-1]
    for dim in range(x.ndim):
        if all(order.shape[d] == x.shape[d] for d in range(x.ndim) if d != dim) and not torch.any(order >= x.shape[dim]):
            led = x.gather(dim, order)
            if len(results) == 1 or torch.equal(led, results[0]):
                return [*results[:-1], led]
    return list(results)


def is_half(result):
    return any(isinstance(x, torch.Tensor) and x.dtype in (torch.float16, torch.bfloat16) for x in tree_flatten(result)[0])


def difference_of_errors(function, sample, got, wanted):
    """Of sums that eager rounds on the way: whether ours are further from the same in double precision than eager's are, and than a rounding."""
    def wide(value):
        return tree_map(lambda x: x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x, value)

    exact, _ = outcome(function, type(sample)(wide(sample.input), args=wide(sample.args), kwargs=wide(sample.kwargs)))
    if isinstance(exact, Exception):
        return True
    for a, b, x in zip(*(tree_flatten(result)[0] for result in (got, wanted, exact))):
        if isinstance(b, torch.Tensor) and (a.double() - x).abs().max() > 2 * max((b.double() - x).abs().max(), torch.finfo(b.dtype).eps * x.abs().max()):
            return True
    return False


def outcome(function, sample):
    """What a call gives, or the type of what it raises; and its inputs afterwards."""
    args = cloned((sample.input, sample.args, sample.kwargs))
    torch.manual_seed(1)
    try:
        with torch.no_grad():
            return function(args[0], *args[1], **args[2]), args
    except Exception as wrong:  # eager's error is compared with ours
        return wrong, args


def check(op, function, sample, told):
    """What is wrong (""), and where it ran: "collage", "both", "pytorch" or "error" where eager raises one too."""
    wanted, inputs = outcome(function, sample)
    torch._dynamo.reset()
    told.lines.clear()
    # With options, so that the first call is Collage's already.
    got, after = outcome(torch.compile(function, backend=compile_fx, options={"targets": "native", "effort": "fast"}), sample)
    if isinstance(wanted, Exception):  # PyTorch's own rewriting does some of what eager refuses
        return "", "error"
    if isinstance(got, Exception):
        return f"{type(got).__name__}: " + " ".join(str(got).split())[:300], "error"
    where = {line.split(":")[0] for line in told.lines}
    mine = any("in Collage" in line for line in where)
    rest = any("runs in PyTorch" in line or ("in Collage" in line and not line.startswith("all ")) for line in where) or not told.lines
    if op.name in UNINITIALISED:
        got, wanted = tree_map(torch.zeros_like, got), tree_map(torch.zeros_like, wanted)
    if op.name in TIES and sample.input.ndim:
        got, wanted = (ordered(sample.input, *tree_flatten(result)[0]) for result in (got, wanted))
    wrong = difference(got, wanted) or difference(after, inputs, "input afterwards")
    if wrong and inputs[0] is not None and is_half(wanted):
        wrong = wrong if difference_of_errors(function, sample, got, wanted) else ""
    return wrong, "both" if mine and rest else "collage" if mine else "pytorch"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--samples", type=int, default=2, help="of each operator and dtype (default 2)")
    parser.add_argument("--dtypes", default="float32,int64,bool,bfloat16,float16")
    parser.add_argument("--shard", default="0/1", help="I/N: every N-th operator from the I-th")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    os.environ.setdefault("COLLAGE_CACHE", tempfile.mkdtemp(prefix="collage-opinfo-"))
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch._dynamo.config.recompile_limit = 1 << 20
    told, wrong, places = Told(), [], {}
    index, count = map(int, options.shard.split("/"))
    for op in op_db[index::count]:
        if options.names and op.name not in options.names and op.formatted_name not in options.names:
            continue
        for name in options.dtypes.split(","):
            dtype = getattr(torch, name)
            if not op.supports_dtype(dtype, "cpu"):
                continue
            torch.manual_seed(0)
            ran = collections.Counter()
            for at, sample in zip(range(options.samples), op.sample_inputs("cpu", dtype, requires_grad=False)):
                functions = {"": op.get_op()}
                if at == 0 and op.get_inplace():
                    functions["_"] = op.get_inplace()
                for suffix, function in functions.items():
                    what, where = check(op, function, sample, told)
                    ran[where] += 1
                    if options.verbose:
                        print(op.formatted_name + suffix, name, at, where, what, told.lines, flush=True)
                    if what:
                        wrong.append(f"{op.formatted_name}{suffix} {name} sample {at} ({where}): {what}")
                        print(wrong[-1], flush=True)
            if ran:
                places[f"{op.formatted_name} {name}"] = dict(ran)
    totals = collections.Counter()
    for ran in places.values():
        totals["all in Collage" if set(ran) <= {"collage", "error"} and ran.get("collage") else
               "partly in Collage" if ran.get("collage") or ran.get("both") else "in PyTorch"] += 1
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"torch": torch.__version__, "wrong": wrong, "places": places, "totals": totals}, file, indent=1)
    print(f"operators and dtypes: {len(places)}; " + ", ".join(f"{what}: {n}" for what, n in sorted(totals.items())))
    print(f"{len(places) - len({line.split(' sample')[0].rstrip('_') for line in wrong})} passed, {len(wrong)} failed")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
