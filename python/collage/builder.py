"""Models built statement by statement."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator, Sequence, Union

from . import _core, te
from ._core import Expression, TensorProgram


class Builder:
    """Builds a module: graph functions that call operators, tensor programs, functions of libraries and one another.

        x = collage.parameter("x", (8, 16))
        builder = collage.Builder()
        with builder.function("main", x):
            with builder.dataflow():
                h = builder.emit(collage.call("nn.relu", x))
                s = builder.emit_te(lambda A: te.compute(A.shape, lambda i, j: te.tanh(A[i, j]) * 0.5), h)
            builder.emit_packed("mine.log", s)
            builder.output(s)
        model = builder.model()

    Calls with effects keep the order in which they are emitted; a block of dataflow has none.
    """

    def __init__(self) -> None:
        self._core = _core.ModuleBuilder()
        self.functions: dict[str, Expression] = {}  # those that have an output, to be called

    @contextlib.contextmanager
    def function(self, name: str, *parameters: Expression, **attributes: Any) -> Iterator[Builder]:
        """What is emitted inside is the function's, up to `output`. `attributes` as for `collage.function`."""
        self._core.begin(name, list(parameters), attributes)
        self._open = name
        yield self

    @contextlib.contextmanager
    def dataflow(self) -> Iterator[Builder]:
        self._core.begin_dataflow()
        yield self
        self._core.end_dataflow()

    def emit(self, value: Expression) -> Expression:
        """The value, computed here."""
        return self._core.emit(value)

    def emit_te(
        self, computed: Union[str, TensorProgram, Callable[..., Any]], *arguments: Expression, name: str = "", **attributes: Any
    ) -> Expression:
        """A call of a program: of what an operator computes, a `TensorProgram`, or a function in terms of `collage.te`."""
        if isinstance(computed, str):
            program = _core.emit_operator(computed, [(list(x.shape), x.dtype) for x in arguments], attributes)
        elif isinstance(computed, TensorProgram):
            program = computed
        else:
            program = te.program(functools.partial(computed, **attributes), *arguments)
        if not name:
            name = computed if isinstance(computed, str) else getattr(computed, "__name__", "program").strip("<>")
        return self._core.emit_te(program, list(arguments), name)

    def emit_packed(self, label: str, /, *arguments: Expression, results: Sequence[Any] = (), **attributes: Any) -> Expression:
        """A call of a function by its label; `results`: an `ArrayType` or a list, where it is not registered yet."""
        types = results if isinstance(results, list) else [results] if results else []
        return self._core.emit_packed(label, list(arguments), attributes, [(list(shape), str(dtype)) for shape, dtype in types])

    def output(self, *results: Expression) -> Expression:
        """Ends the function, which is given back by its name, for calls. Several results are a tuple."""
        value = results[0] if len(results) == 1 else _core.tuple_of(list(results))
        self.functions[self._open] = self._core.output(value)
        return self.functions[self._open]

    def model(self) -> Any:
        """The module so far, verified."""
        from . import Model

        return Model(self._core.model())
