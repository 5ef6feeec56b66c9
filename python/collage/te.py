"""Tensor programs written in Python, one term for every element: for `Builder.emit_te`, or as a `TensorProgram`.

    def product(A, B):
        k = te.reduce_axis(A.shape[1], "k")
        return te.compute((A.shape[0], B.shape[1]), lambda i, j: te.sum(A[i, k] * B[k, j], k), name="C")

    program = te.program(product, te.array((16, 32)), te.array((32, 24)))
    program = program.scheduled(te.Schedule().parallel("C", "i"))

Terms are those of docs/tensor-programs.md: indices are int32, integer division rounds down, and a number takes the other operand's type.
"""

from __future__ import annotations

import inspect
import itertools
import math
import threading
from typing import Any, Callable, Optional, Sequence, Union

from ._core import TensorProgram
from ._error import Error, ErrorCode

_SUFFIXES = {"float32": "f", "float64": "d", "int32": "", "int64": "i64"}
_writing = threading.local()  # names: of the program that is written


def _wrong(message: str) -> Error:
    return Error(ErrorCode.BAD_MODEL, message)


def _fresh(wanted: str) -> str:
    names = getattr(_writing, "names", None)
    if names is None:
        raise _wrong("arrays are computed in the function that te.program or emit_te calls")
    name = next(name for name in itertools.chain([wanted], map(f"{wanted}_{{}}".format, itertools.count(1))) if name not in names)
    names.add(name)
    return name


class Term:
    """An expression over indices, elements of arrays and numbers."""

    def __init__(self, text: str, dtype: str):
        self.text, self.dtype = text, dtype

    def astype(self, dtype: str) -> Term:
        return self if dtype == self.dtype else Term(f"{dtype}({self.text})", dtype)

    def equal(self, other: Any) -> Term:
        return _binary("==", self, other, "bool")

    def __add__(self, other: Any) -> Term:
        return _binary("+", self, other)

    def __radd__(self, other: Any) -> Term:
        return _binary("+", other, self)

    def __sub__(self, other: Any) -> Term:
        return _binary("-", self, other)

    def __rsub__(self, other: Any) -> Term:
        return _binary("-", other, self)

    def __mul__(self, other: Any) -> Term:
        return _binary("*", self, other)

    def __rmul__(self, other: Any) -> Term:
        return _binary("*", other, self)

    def __mod__(self, other: Any) -> Term:
        return _binary("%", self, other)

    def __rmod__(self, other: Any) -> Term:
        return _binary("%", other, self)

    def __lt__(self, other: Any) -> Term:
        return _binary("<", self, other, "bool")

    def __le__(self, other: Any) -> Term:
        return _binary("<=", self, other, "bool")

    def __gt__(self, other: Any) -> Term:
        return _binary(">", self, other, "bool")

    def __ge__(self, other: Any) -> Term:
        return _binary(">=", self, other, "bool")

    def __and__(self, other: Any) -> Term:
        return _binary("&&", self, other, "bool")

    def __or__(self, other: Any) -> Term:
        return _binary("||", self, other, "bool")

    def __neg__(self) -> Term:
        return Term(f"(-{self.text})", self.dtype)

    def __truediv__(self, other: Any) -> Term:
        return _quotient(self, other)

    def __rtruediv__(self, other: Any) -> Term:
        return _quotient(other, self)

    def __floordiv__(self, other: Any) -> Term:
        if self.dtype.startswith("float"):
            raise _wrong("// is for integers, / for real numbers")
        return _binary("/", self, other)

    def __bool__(self) -> bool:
        raise TypeError("a term has no value while a program is written: te.select(condition, a, b)")


def _as_term(value: Any, dtype: str) -> Term:
    if isinstance(value, Term):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"a term or a number, not a {type(value).__name__}")
    if isinstance(value, float) and not dtype.startswith("float"):
        raise _wrong(f"{value} among numbers that are {dtype}")
    if dtype not in _SUFFIXES:
        return Term(f"{dtype}({value})", dtype)
    if math.isnan(value) or math.isinf(value):
        text = "nan" if math.isnan(value) else "inf"
    else:
        size = -value if value < 0 else value
        text = repr(float(size)) if dtype.startswith("float") else str(size)
    text += _SUFFIXES[dtype]
    return Term(f"(-{text})" if math.copysign(1, value) < 0 else text, dtype)


def _pair(a: Any, b: Any) -> tuple[Term, Term]:
    dtype = a.dtype if isinstance(a, Term) else b.dtype if isinstance(b, Term) else "float32"
    return _as_term(a, dtype), _as_term(b, dtype)


def _binary(spelling: str, a: Any, b: Any, dtype: Optional[str] = None) -> Term:
    first, second = _pair(a, b)
    return Term(f"({first.text} {spelling} {second.text})", dtype or first.dtype)


def _quotient(a: Any, b: Any) -> Term:
    if not _pair(a, b)[0].dtype.startswith("float"):
        raise _wrong("/ is for real numbers, // for integers")
    return _binary("/", a, b)


def _function(name: str, dtype: Optional[str] = None) -> Callable[[Term], Term]:
    def function(x: Term) -> Term:
        return Term(f"{name}({x.text})", dtype or x.dtype)

    function.__name__ = name
    return function


exp, log, sqrt, erf, tanh, sin, cos = (_function(name) for name in ("exp", "log", "sqrt", "erf", "tanh", "sin", "cos"))
abs, ceil, floor, round, is_nan = _function("abs"), _function("ceil"), _function("floor"), _function("round"), _function("is_nan", "bool")


def _of_two(name: str, a: Any, b: Any) -> Term:
    first, second = _pair(a, b)
    return Term(f"{name}({first.text}, {second.text})", first.dtype)


def power(base: Any, exponent: Any) -> Term:
    return _of_two("power", base, exponent)


def select(condition: Term, yes: Any, no: Any) -> Term:
    first, second = _pair(yes, no)
    return Term(f"select({condition.text}, {first.text}, {second.text})", first.dtype)


class ReduceAxis(Term):
    """An index that a reduction runs over."""

    def __init__(self, extent: int, name: str):
        super().__init__(name, "int32")
        self.extent = extent


def reduce_axis(extent: int, name: str) -> ReduceAxis:
    return ReduceAxis(extent, name)


class Reduction:
    """What an element is, whole: a term combined over axes."""

    def __init__(self, how: str, term: Term, axes: Union[ReduceAxis, Sequence[ReduceAxis]]):
        over = [axes] if isinstance(axes, ReduceAxis) else list(axes)
        self.text = f"{how}({', '.join(f'{axis.text}:{axis.extent}' for axis in over)}) {term.text}"
        self.dtype = term.dtype


def sum(term: Term, axes: Union[ReduceAxis, Sequence[ReduceAxis]]) -> Reduction:
    return Reduction("sum", term, axes)


def product(term: Term, axes: Union[ReduceAxis, Sequence[ReduceAxis]]) -> Reduction:
    return Reduction("product", term, axes)


def max(term: Term, other: Any) -> Union[Term, Reduction]:
    """Of two terms; of one over axes."""
    return _of_two("max", term, other) if not _are_axes(other) else Reduction("max", term, other)


def min(term: Term, other: Any) -> Union[Term, Reduction]:
    return _of_two("min", term, other) if not _are_axes(other) else Reduction("min", term, other)


def _are_axes(value: Any) -> bool:
    return isinstance(value, (ReduceAxis, list, tuple))


class Array:
    """A parameter, or what `compute` gives. Indexed it is a term."""

    def __init__(self, shape: Sequence[int], dtype: str, name: str = "", declared: str = ""):
        self.shape, self.dtype, self.name, self._declared = tuple(shape), dtype, name, declared

    def __getitem__(self, indices: Any) -> Term:
        at = indices if isinstance(indices, tuple) else (indices,)
        if len(at) != len(self.shape):
            raise _wrong(f"{len(at)} indices of an array with {len(self.shape)} dimensions")
        return Term(f"{self.name}[{', '.join(_as_term(index, 'int32').text for index in at)}]", self.dtype)


def array(shape: Sequence[int], dtype: str = "float32") -> Array:
    """The shape and type of a parameter, for `program`."""
    return Array(shape, dtype)


def compute(shape: Sequence[int], element: Callable[..., Union[Term, Reduction]], name: str = "T") -> Array:
    """An array whose elements are what `element` gives for their indices, whose names it chooses."""
    names = [parameter.name for parameter in inspect.signature(element).parameters.values()]
    if len(names) != len(shape):
        raise _wrong(f"{name}: {len(names)} indices of {len(shape)} dimensions")
    value = element(*(Term(index, "int32") for index in names))
    own = _fresh(name)
    axes = ", ".join(f"{index}:{extent}" for index, extent in zip(names, shape))
    made = Array(shape, value.dtype, own, f"{own}[{axes}] = {value.text};")
    _writing.stages.append(made)
    return made


def program(function: Callable[..., Union[Array, Sequence[Array]]], *arguments: Any) -> TensorProgram:
    """The program of a function that gets arrays and gives those that it computes; they are the results, in the order of computing.

    Of `arguments` (arrays, or expressions) shapes and dtypes matter, and the parameters have the function's names.
    """
    before = getattr(_writing, "names", None), getattr(_writing, "stages", None)
    _writing.names, _writing.stages = set(), []
    try:
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        wanted = [given.name for given in inspect.signature(function).parameters.values() if given.kind in positional]
        wanted += [f"p{i}" for i in range(len(wanted), len(arguments))]
        params = [Array(given.shape, given.dtype, _fresh(name)) for given, name in zip(arguments, wanted)]
        given = function(*params)
        results = [given] if isinstance(given, Array) else list(given)
        if any(result not in _writing.stages for result in results):
            raise _wrong("a program gives what te.compute gives")
        lines = [f"  param {param.name}: {param.dtype}[{', '.join(map(str, param.shape))}];" for param in params]
        lines += [f"  {'result' if stage in results else 'stage'} {stage._declared}" for stage in _writing.stages]
    finally:
        _writing.names, _writing.stages = before
    return TensorProgram("program {\n" + "\n".join(lines) + "\n}\n")


class Schedule(list):
    """Steps of a schedule: each method adds one, of a stage by name, or of its update "C.update(0)", and gives the schedule back.

        te.Schedule().split("C", "i", "tasks", "rows", 4).parallel("C", "tasks")

    Its names are those of docs/tensor-programs.md: split, fuse, reorder, vectorise, unroll, parallel, compute_at, compute_root ...
    """

    def __getattr__(self, step: str) -> Callable[..., Schedule]:
        if step.startswith("_"):
            raise AttributeError(step)

        def add(stage: str, *arguments: Union[str, int]) -> Schedule:
            self.append(f"{stage}.{step}({', '.join(map(str, arguments))});")
            return self

        return add
