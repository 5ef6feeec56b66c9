"""Functions in Python that tensor programs, modules and ONNX nodes may call by label."""

from __future__ import annotations

import ctypes as _ctypes
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence, Union

from . import _core

_kept: list[Any] = []  # what the extension refers to, for as long as there is an interpreter


class ArrayType(NamedTuple):
    """Shape and dtype ("float32", "int64" ...) of an array."""

    shape: tuple[int, ...]
    dtype: str


def register_function(
    label: str,
    function: Callable[..., None],
    type: Callable[..., Union[ArrayType, list[ArrayType]]],
    *,
    updates: Union[int, Sequence[int], None] = None,
    onnx: str = "",
    arrays: str = "numpy",
    attributes: Optional[Mapping[str, Any]] = None,
    effects: bool = False,
) -> None:
    """A function that models may call by its label, for models that are loaded afterwards in this process.

        def cumulated(x, out):
            np.cumsum(x, axis=-1, out=out)

        collage.register_function("mine.cumulated", cumulated, type=lambda x: x, onnx="com.example::Cumulated")

    `type` gets an `ArrayType` for each input and gives that of the result, or a list of several. `function` gets the inputs and then
    the results, which it fills: arrays over the program's own memory, so none may be kept after the call; inputs are read-only.
    What it computes may depend on the inputs alone. `updates`: the input that it updates in place, where the first result lies, or a
    list of them. `onnx`: "domain::Operator", the nodes that mean it. `arrays`: "numpy", or "torch" for tensors of PyTorch.

    `attributes`: what calls may state, with defaults; both functions get the values by name. `effects`: it does more than fill its
    results, of which `type` may give none (`[]`): it is called once in each run, in the order of the text, and never while a model
    is compiled, checked or timed, where its results are zeros.
    """
    if arrays not in ("numpy", "torch"):
        raise ValueError("arrays: 'numpy' or 'torch'")

    def rule(inputs: Sequence[tuple[Sequence[int], str]], values: dict[str, Any]) -> list[tuple[list[int], str]]:
        given = type(*(ArrayType(tuple(shape), dtype) for shape, dtype in inputs), **values)
        return [(list(shape), str(dtype)) for shape, dtype in (given if isinstance(given, list) else [given])]

    all_updates = [] if updates is None else [updates] if isinstance(updates, int) else list(updates)
    _core.register_function(label, function, rule, all_updates, onnx, arrays == "torch", dict(attributes or {}), effects)
    _kept.extend((function, rule))


def register_node(node: str, label: str) -> None:
    """Makes nodes of ONNX calls of a function, for models that are loaded afterwards: inputs in order, attributes by name.

        collage.register_node("com.example::Inverse", "torch.linalg.inv")

    `node`: "domain::Operator"; those that Collage implements keep their meaning. `label`: of any function without effects.
    """
    _core.register_node(node, label)


def register_intrinsic(name: str, program: str, lowering: Any) -> None:
    """What a function in C computes for several elements of an array at once, for schedules of programs to name (docs/tensor-programs.md).

    `program` declares it over the number of its lanes, n, with parameters A[terms] and B[n, terms], or over a tile of rows and lanes.
    `lowering` adds its result to sums: `void f(int64_t n, T* sums, const A* a, const B* b, const int64_t* rows)`, a function of
    `ctypes`, or its address; None: this machine has none, and programs that name it keep their loops. It is tried on random values,
    and refused where it computes something else. Programs compiled with it cannot be saved.
    """
    address = lowering if lowering is None or isinstance(lowering, int) else _ctypes.cast(lowering, _ctypes.c_void_p).value
    _core.register_intrinsic(name, program, address or 0)
    _kept.append(lowering)
