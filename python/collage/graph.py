"""Graphs: expressions to build and to replace others with. They are immutable, and typed when they are made."""

from __future__ import annotations

from typing import Any, Sequence, Union

from . import _core
from ._core import Expression
from ._error import Error, ErrorCode

Array = Any


def call(callee: Union[str, Expression], *arguments: Expression, origin: str = "", **attributes: Any) -> Expression:
    """A call of an operator by name, or of a function: `call("nn.softmax", x, axis=-1)`.

    `origin`: what messages and reports call it. Attributes are the operator's: numbers, text, lists of these.
    """
    if isinstance(callee, str):
        return _core.call(callee, list(arguments), attributes, origin)
    if attributes:
        raise Error(ErrorCode.USAGE, f"a call of a function has no attributes: {', '.join(attributes)}")
    return _core.call_function(callee, list(arguments), origin)


def constant(value: Any, dtype: str = "") -> Expression:
    """An array, which is copied, or a number: float32, int64 or bool unless `dtype` says otherwise."""
    if isinstance(value, (bool, int, float)) or dtype:
        import numpy

        kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"
        value = numpy.asarray(value, dtype or kind)
    return _core.constant(value)


def parameter(name: str, shape: Sequence[int], dtype: str = "float32") -> Expression:
    """Of a function that is built here."""
    return _core.parameter(name, dtype, list(shape))


def function(parameters: Sequence[Expression], body: Expression, **attributes: Any) -> Expression:
    """`Primitive=1` makes it one kernel, `Compiler="onednn"` that toolchain's, `Composite="name"` names it."""
    return _core.function(list(parameters), body, attributes)


def tuple_of(*fields: Expression) -> Expression:
    return _core.tuple_of(list(fields))


def item(of: Expression, index: int) -> Expression:
    """One value of a tuple."""
    return _core.item(of, index)
