"""Operators of PyTorch as functions that models call by label: torch.conv2d, torch.special.erf, torch.sum.dim_IntList (docs/torch.md).

    extern @conv(Tensor[(1, 10, 32, 32), float32], Tensor[(20, 10, 3, 3), float32], padding=[1, 1]) = "torch.conv2d";

A label is resolved when a model first names it. The operator's schema says the rest: the call's tensors are its arguments that are tensors, in order,
its attributes the others by name, with the schema's defaults. Of several overloads the first that takes what the call has is meant. Tensors without memory (of the
device meta) say what it gives. A call works on the program's own memory, and the overload that writes into given tensors (`out`) is used where there is one.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, NamedTuple, Optional, Sequence

from . import _core
from ._error import Error, ErrorCode

PREFIX = "torch."
_TENSORS = "tensors"  # the attribute that names the arguments that the call's tensors are, where not all before them are given

Type = tuple[tuple[int, ...], str]  # shape and dtype


class _Call(NamedTuple):
    """An operator with what stays the same from call to call."""

    overload: Any
    places: dict[str, Any]  # by argument: the number of the call's tensor, or a list of such
    others: dict[str, Any]  # by argument: its value
    outs: Sequence[str]  # the arguments that results are written to; none: it gives new tensors

    def __call__(self, tensors: Sequence[Any], **results: Any) -> Any:
        given = {name: [tensors[i] for i in place] if isinstance(place, list) else tensors[place] for name, place in self.places.items()}
        return self.overload(**given, **self.others, **results)


def resolve(label: str) -> tuple[Callable[..., None], Callable[..., list[Type]]]:
    """The function of a label and its type rule, as the extension wants them."""
    _kept[label] = _kept.get(label) or (functools.partial(_run, label), functools.partial(_types, label))
    _overloads(label)
    return _kept[label]


_kept: dict[str, Any] = {}  # what the extension refers to


def _types(label: str, inputs: Sequence[Type], attributes: dict[str, Any]) -> list[Type]:
    return _resolved(label, tuple((tuple(shape), dtype) for shape, dtype in inputs), _hashable(attributes.items()))[1]


def _run(label: str, inputs: list[Any], results: list[Any], attributes: dict[str, Any]) -> None:
    from .aten.table import DTYPES
    from .torch_part import one_line

    call, types = _resolved(label, tuple((tuple(x.shape), DTYPES[x.dtype]) for x in inputs), _hashable(attributes.items()))
    places = [result.data_ptr() for result in results]
    try:
        given = _tensors_of(call(inputs, **dict(zip(call.outs, results))))
    except Exception as wrong:
        raise Error(ErrorCode.BAD_MODEL, one_line(wrong)) from wrong
    for value, result, place, (shape, dtype) in zip(given, results, places, types):
        if list(value.shape) != shape or DTYPES[value.dtype] != dtype:
            raise Error(ErrorCode.INTERNAL, f"it gave a {DTYPES[value.dtype]} of {list(value.shape)}, and was to give a {dtype} of {shape}")
        if not call.outs:
            result.copy_(value)
        elif value.data_ptr() != place:
            raise Error(ErrorCode.INTERNAL, "its result is elsewhere than it was told")


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str) or not hasattr(value, "__iter__") else tuple(_hashable(item) for item in value)


@functools.lru_cache(maxsize=4096)
def _resolved(label: str, inputs: tuple[Type, ...], attributes: Any) -> tuple[_Call, list[Type]]:
    """The call of these inputs, and what it gives."""
    import torch
    from .aten.table import DTYPES, TORCH
    from .torch_part import one_line
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    call = _chosen(_overloads(label), len(inputs), dict(attributes))
    try:
        with unset_fake_temporarily():
            given = _tensors_of(call([torch.empty(shape, dtype=TORCH[dtype], device="meta") for shape, dtype in inputs]))
    except NotImplementedError:
        depends = torch.Tag.dynamic_output_shape in call.overload.tags
        raise Error(ErrorCode.UNSUPPORTED, "the shapes of its results depend on values" if depends else "PyTorch does not say what it gives") from None
    except Exception as wrong:
        raise Error(ErrorCode.BAD_MODEL, one_line(wrong)) from wrong
    if given is None or not all(isinstance(value, torch.Tensor) for value in given):
        raise Error(ErrorCode.UNSUPPORTED, "it gives something else than tensors")
    for value in given:
        if value.dtype not in DTYPES or value.layout is not torch.strided:
            raise Error(ErrorCode.UNSUPPORTED, f"it gives a tensor of {value.dtype}, {value.layout}")
    return _with_outs(call), [(list(value.shape), DTYPES[value.dtype]) for value in given]


def _tensors_of(results: Any) -> Optional[list[Any]]:
    return list(results) if isinstance(results, (tuple, list)) else None if results is None else [results]


@functools.lru_cache(maxsize=None)
def _overloads(label: str) -> list[Any]:
    """Those that a label may mean: functions of tensors."""
    try:
        import torch
    except ImportError:
        raise Error(ErrorCode.UNAVAILABLE, "it needs PyTorch: pip install torch") from None
    words = label[len(PREFIX):].split(".")
    for space in (["aten"], ["nn", "functional"]):
        words = words[len(space):] if words[:len(space)] == space else words
    for count in (len(words), len(words) - 1):
        packet = getattr(torch.ops.aten, "_".join(words[:count]), None) if words[0] and not words[0].startswith("_") else None
        if not isinstance(packet, torch._ops.OpOverloadPacket):
            continue
        named = packet.overloads() if count == len(words) else [name for name in packet.overloads() if name == words[count]]
        overloads = [getattr(packet, name) for name in named]
        functions = [overload for overload in overloads if _is_function(overload._schema)]
        if overloads and not functions:
            raise Error(ErrorCode.UNSUPPORTED, "it is no function from tensors to new tensors")
        if overloads and any(word in packet.__name__ for word in ("empty", "resize")):
            raise Error(ErrorCode.UNSUPPORTED, "it gives memory that nobody wrote")
        pure = [overload for overload in functions if torch.Tag.nondeterministic_seeded not in overload.tags]
        if functions and not pure:
            raise Error(ErrorCode.UNSUPPORTED, "it draws random numbers: calls give what their inputs say")
        if pure:
            return pure
    raise Error(ErrorCode.UNSUPPORTED, f"PyTorch {torch.__version__} has no such operator")


def _is_tensor(argument: Any) -> bool:
    return "Tensor" in str(argument.type)


def _is_function(schema: Any) -> bool:
    return (any(map(_is_tensor, schema.arguments)) and bool(schema.returns) and all(map(_is_tensor, schema.returns))
            and not any(argument.alias_info and argument.alias_info.is_write for argument in schema.arguments))


def _chosen(overloads: Sequence[Any], count: int, attributes: dict[str, Any]) -> _Call:
    refusals = []
    for overload in overloads:
        try:
            return _bound(overload, count, attributes)
        except Error as wrong:
            refusals.append(wrong)
    if len(refusals) == 1:
        raise refusals[0]
    stated = f" and {', '.join(attributes)}" if attributes else ""
    names = ", ".join(overload._overloadname for overload in overloads)
    raise Error(ErrorCode.BAD_MODEL, f"no overload ({names}) takes {count} tensor{'s' * (count != 1)}{stated}")


def _bound(overload: Any, count: int, attributes: dict[str, Any]) -> _Call:
    """The call of an overload with so many tensors; an error where it does not take these, or an attribute."""
    arguments = {argument.name: argument for argument in overload._schema.arguments}
    places = _places([argument for argument in arguments.values() if _is_tensor(argument)], count, attributes.get(_TENSORS))
    others = {}
    for name, value in attributes.items():
        if name == _TENSORS:
            continue
        if name not in arguments or _is_tensor(arguments[name]):
            raise Error(ErrorCode.BAD_MODEL, f"{overload._schema} has no attribute '{name}'")
        others[name] = _converted(arguments[name], value)
    for name, argument in arguments.items():
        if name in places or name in others or argument.has_default_value():
            continue
        if not str(argument.type).startswith("Optional"):
            raise Error(ErrorCode.BAD_MODEL, f"its argument '{name}' is missing: {overload._schema}")
        others[name] = None
    return _Call(overload, places, others, ())


def _places(arguments: Sequence[Any], count: int, names: Optional[str]) -> dict[str, Any]:
    """Which of the call's tensors each argument gets."""
    lists = [argument.name for argument in arguments if "List" in str(argument.type)]
    if names is not None:
        order = [name.strip() for name in names.split(",")]
        wrong = [name for name in order if name not in [argument.name for argument in arguments] or (order.count(name) > 1 and name not in lists)]
        if wrong or len(order) != count:
            raise Error(ErrorCode.BAD_MODEL, f"{_TENSORS}: a name of an argument for each of {count} tensors, not '{names}'")
    else:
        required = [argument.name for argument in arguments if argument.name not in lists and not str(argument.type).startswith("Optional")]
        spare = count - len(required)
        order = []
        for argument in arguments:
            times = 1 if argument.name in required else max(0, spare) if argument.name in lists else min(1, max(0, spare))
            spare -= 0 if argument.name in required else times
            order += [argument.name] * times
        if len(order) != count:
            raise Error(ErrorCode.BAD_MODEL, f"it takes {len(order)} tensor{'s' * (len(order) != 1)}, not {count}")
    return {name: [i for i, other in enumerate(order) if other == name] if name in lists else order.index(name) for name in dict.fromkeys(order)}


_KINDS = {"int": int, "float": (int, float), "number": (int, float), "bool": (bool, int), "str": str}


def _converted(argument: Any, value: Any) -> Any:
    """An attribute's value as the operator takes it."""
    from .aten.table import TORCH

    kind = str(argument.real_type)
    if kind.startswith("Optional["):
        if value is None:
            return None
        kind = kind[len("Optional["):-1]
    if kind == "ScalarType" and value in TORCH:
        return TORCH[value]
    item = kind[len("List["):-1] if kind.startswith("List[") else ""
    values = list(value) if isinstance(value, tuple) else [value]
    takes_one = argument.N is not None or not item
    if (item or kind) in _KINDS and (takes_one or isinstance(value, tuple)) and (item or not isinstance(value, tuple)) and all(
            isinstance(one, _KINDS[item or kind]) for one in values):
        made = [bool(one) if (item or kind) == "bool" else one for one in values]
        return made if item else made[0]
    raise Error(ErrorCode.BAD_MODEL, f"attribute '{argument.name}' is of another kind: {argument.real_type}")


def _with_outs(call: _Call) -> _Call:
    """The overload that writes into given tensors, if there is one of the same arguments."""
    def signature(arguments: Sequence[Any]) -> list[tuple[str, str]]:
        return [(argument.name, str(argument.real_type)) for argument in arguments if not argument.is_out]

    schema, packet = call.overload._schema, call.overload.overloadpacket
    for name in packet.overloads():
        other = getattr(packet, name)._schema
        outs = [argument.name for argument in other.arguments if argument.is_out and str(argument.type) == "Tensor"]
        if len(outs) == len(schema.returns) > 0 and signature(other.arguments) == signature(schema.arguments):
            return call._replace(overload=getattr(packet, name), outs=outs)
    return call


_core.register_functions(PREFIX, resolve)
