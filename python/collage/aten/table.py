"""The table of ATen operators, and how a graph of them becomes a graph of Collage's.

A converter takes the node's arguments, tensors as `collage.Expression`, and gives an expression, or a tuple of them for an operator
with several results (None for one that it does not have). What it cannot express it refuses with `Unsupported`; so do the type rules of
Collage's operators (`collage.Error`). A node is Collage's where its converter gives what PyTorch says of the result: `agrees` compares
shapes and dtypes. Adding an operator is one function with `@operator`.
"""

from __future__ import annotations

import operator as _operator
import threading
from typing import Any, Callable, Optional, Sequence, Union

import torch
from torch.fx import Node

from .. import graph
from .._core import Expression
from .._error import Error

Value = Any  # an Expression, a number, a dtype, None, or a list or tuple of these
Converter = Callable[..., Value]

DTYPES = {
    torch.float32: "float32", torch.float64: "float64", torch.float16: "float16", torch.bfloat16: "bfloat16", torch.int8: "int8",
    torch.int16: "int16", torch.int32: "int32", torch.int64: "int64", torch.uint8: "uint8", torch.bool: "bool",
}
FLOATS = ("float32", "float64", "float16", "bfloat16")
TORCH = {name: dtype for dtype, name in DTYPES.items()}


class Unsupported(Exception):
    """Why an operator is PyTorch's to compute."""


class Empty:
    """A tensor without elements, which no operator but a concatenation takes."""


class Result:
    """What PyTorch says of a node that no shape decides: the `dtype` of its (first) result."""

    def __init__(self, node: Node) -> None:
        self.node = node
        value = node.meta["val"]
        first = value[0] if isinstance(value, (tuple, list)) else value
        self.dtype = dtype_of(first)


TABLE: dict[Any, Converter] = {}
# Converters that look at the result's dtype or use take it as `result`.
_WITH_RESULT: set[Converter] = set()


def operator(*names: str) -> Callable[[Converter], Converter]:
    """Registers a converter for overloads, "add.Tensor"; without a dot the default one, of ATen without a name space.

    One that a version of PyTorch lacks is left out.
    """

    def register(convert: Converter) -> Converter:
        if "result" in convert.__code__.co_varnames[: convert.__code__.co_argcount + convert.__code__.co_kwonlyargcount]:
            _WITH_RESULT.add(convert)
        for name in names:
            packet, _, overload = name.partition(".")
            space, _, packet = packet.rpartition("::")
            found = getattr(getattr(getattr(torch.ops, space or "aten"), packet, None), overload or "default", None)
            if found is not None:
                TABLE[found] = convert
        return convert

    return register


def dtype_of(tensor: torch.Tensor) -> str:
    try:
        return DTYPES[tensor.dtype]
    except KeyError:
        raise Unsupported(f"{tensor.dtype}") from None


def fits(value: Any) -> bool:
    """Whether Collage can hold a tensor: dense, in CPU memory, of a dtype that it has."""
    return isinstance(value, torch.Tensor) and value.dtype in DTYPES and value.device.type == "cpu" and value.layout is torch.strided


def is_empty(value: torch.Tensor) -> bool:
    return any(concrete(extent) == 0 for extent in value.shape)


def concrete(size: Any) -> int:
    """An extent, or the one that a symbol was first seen with."""
    if isinstance(size, int):
        return size
    if isinstance(size, Expression):
        raise Unsupported("an extent that values decide")
    hint = size.node.hint if isinstance(size, torch.SymInt) else None
    if hint is None:
        raise Unsupported("an extent that values decide")
    return int(hint)


def shape_of(tensor: torch.Tensor) -> list[int]:
    return [concrete(extent) for extent in tensor.shape]


class Lowering:
    """Converts nodes one after the other; `values` holds what they gave. With `labels` nodes that nothing converts are calls of PyTorch."""

    def __init__(self, labels: bool = False) -> None:
        self.values: dict[Node, Value] = {}
        self._labels = labels

    def convert(self, node: Node) -> Value:
        """The node's value; Unsupported, or collage.Error, where it has none. Does not compare it with what PyTorch says."""
        try:
            return self._convert(node)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as wrong:  # operands that no converter expects
            raise Unsupported(f"{node.target}: {wrong}") from wrong

    def _convert(self, node: Node) -> Value:
        _converted.name = node.name
        args, kwargs = self._concrete(node.args), self._concrete(node.kwargs)
        if node.target is _operator.getitem:
            items = args[0]
            value = items[args[1]] if isinstance(items, (tuple, list)) else None
            if value is None:
                raise Unsupported("a result that Collage does not compute")
            return value
        convert = TABLE.get(node.target)
        if convert is None and self._labels and isinstance(node.target, torch._ops.OpOverload):
            return by_label(node, args, kwargs)
        if convert is None:
            raise Unsupported(f"{node.target} is no operator that Collage has")
        return convert(*args, **kwargs, **({"result": Result(node)} if convert in _WITH_RESULT else {}))

    def _concrete(self, value: Any) -> Any:
        if isinstance(value, Node):
            return self.values[value]
        if isinstance(value, (list, tuple)):
            return [self._concrete(item) for item in value]
        if isinstance(value, dict):
            return {key: self._concrete(item) for key, item in value.items()}
        if isinstance(value, torch.SymInt):
            return concrete(value)
        return value


def by_label(node: Node, args: Sequence[Value], kwargs: dict[str, Value]) -> Value:
    """A call of the operator by its label (`collage.torch_labels`): of real numbers, since what draws or checks inputs knows no others that fit."""
    schema, names, tensors, attributes = node.target._schema, [], [], {}
    for name, value in {**dict(zip([argument.name for argument in schema.arguments], args)), **kwargs}.items():
        values = value if isinstance(value, list) and value else [value]
        if all(isinstance(one, Expression) for one in values):
            names += [name] * len(values)
            tensors += values
        elif value is not None:
            attributes[name] = value
    if node.target.namespace != "aten" or node.target.is_view or not tensors:
        raise Unsupported(f"{node.target} is no function of tensors")
    label = f"torch.{schema.name.split('::')[1]}.{node.target._overloadname}"
    made = call("external_function", *tensors, label=label, tensors=", ".join(names), **attributes)
    several = len(schema.returns) > 1
    used = {user.args[1] for user in node.users} if several else {0}
    results = tuple(graph.item(made, i) for i in range(len(schema.returns))) if several else (made,)
    if not all(x.dtype in ("float32", "float64") for x in [*tensors, *(results[i] for i in used)]):
        raise Unsupported(f"{node.target} of other numbers than real ones")
    return results if several else made


def agrees(value: Value, meta: Any) -> bool:
    """Whether a converted value is of the shape and dtype that PyTorch gives. Of several results those that there are."""
    if isinstance(value, (tuple, list)):
        return isinstance(meta, (tuple, list)) and len(value) == len(meta) and all(v is None or agrees(v, m) for v, m in zip(value, meta))
    return (isinstance(value, Expression) and fits(meta) and not is_empty(meta) and DTYPES[meta.dtype] == value.dtype
            and list(value.shape) == shape_of(meta))


def try_convert(lowering: Lowering, node: Node) -> Optional[Value]:
    """None, where Collage does not compute this node: what is needed to know that is its type alone."""
    try:
        value = lowering.convert(node)
        return value if agrees(value, node.meta.get("val")) else None
    except (Unsupported, Error):
        return None


# What converters are written with.

_converted = threading.local()  # the node that this thread converts, for messages and reports


def call(name: str, *arguments: Expression, **attributes: Any) -> Expression:
    return graph.call(name, *arguments, origin=_converted.name, **attributes)


def cast(x: Expression, dtype: str) -> Expression:
    return x if x.dtype == dtype else call("cast", x, dtype=dtype)


def scalar(value: Union[int, float, bool], dtype: str) -> Expression:
    """A constant of that dtype; what it cannot hold is refused."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) or not isinstance(value, (int, float, bool)):
        raise Unsupported(f"{value} is no number")
    tensor = torch.tensor(value, dtype=TORCH[dtype])  # raises where an integer overflows
    return constant(tensor)


def constant(tensor: torch.Tensor) -> Expression:
    return graph.constant(tensor.detach().contiguous())


def operand(x: Union[Expression, int, float, bool], dtype: str) -> Expression:
    return cast(x, dtype) if isinstance(x, Expression) else scalar(x, dtype)


def sizes(values: Sequence[Any]) -> list[int]:
    return [concrete(value) for value in values]


def reshape(x: Expression, shape: Sequence[int]) -> Expression:
    return x if list(x.shape) == list(shape) else call("reshape", x, newshape=list(shape))


def transpose(x: Expression, axes: Sequence[int]) -> Expression:
    rank = len(x.shape)
    axes = [axis % rank for axis in axes]
    return x if axes == list(range(rank)) else call("transpose", x, axes=axes)


def broadcast_to(x: Expression, shape: Sequence[int]) -> Expression:
    return x if list(x.shape) == list(shape) else call("broadcast_to", x, shape=list(shape))


def axis_of(x: Expression, dim: int) -> int:
    rank = max(1, len(x.shape))
    if not -rank <= dim < rank:
        raise Unsupported(f"axis {dim} of rank {rank}")
    return dim % rank


def axes_of(x: Expression, dims: Union[None, int, Sequence[int]]) -> list[int]:
    """As reductions have them: none, or an empty list, are all."""
    if isinstance(dims, int):
        dims = [dims]
    return sorted({axis_of(x, dim) for dim in dims}) if dims else list(range(len(x.shape)))


def promoted(*values: Any) -> str:
    """The dtype that PyTorch computes an elementwise operator of these operands in."""
    from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

    likes = [torch.empty([1] * len(v.shape), dtype=TORCH[v.dtype], device="meta") if isinstance(v, Expression) else v for v in values]
    return DTYPES[elementwise_dtypes(*likes, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)[1]]
