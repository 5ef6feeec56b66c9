"""Models over symbols: one module for all sizes of its inputs' open dimensions (docs/modules.md)."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Union

from . import _core
from ._core import TensorInfo
from ._error import Error

if TYPE_CHECKING:
    from . import Model, Program

Path = Union[str, "os.PathLike[str]"]


class SymbolicModel:
    """A family of models, one for each values of its symbols. Immutable."""

    def __init__(self, core: _core.SymbolicModel) -> None:
        self._core = core
        self.symbols: list[str] = core.symbols
        self.inputs: list[TensorInfo] = core.inputs
        self.outputs: list[TensorInfo] = core.outputs
        self.text: str = core.text

    def at(self, *, simplify: bool = True, **sizes: int) -> Model:
        """The model of these sizes, simplified as `collage.load` does: `bert.at(batch=1, sequence=128)`."""
        from . import Model

        return Model(self._core.at(sizes, simplify))

    def compile(self, **options: Any) -> Program:
        """A program that is compiled for the shapes that come; `options` are those of `collage.load_dynamic`."""
        from . import load_dynamic

        return load_dynamic(self, **options)

    def save(self, path: Path) -> None:
        """Writes it to a file whose name ends in .relay, and large constants to a file beside it (.relay.bin)."""
        self._core.save(path)

    def __repr__(self) -> str:
        def tensors(infos: Sequence[TensorInfo]) -> str:
            return ", ".join(f"{info.name}: {info.dtype}[{', '.join(info.dims)}]" for info in infos)

        return f"<collage.SymbolicModel {tensors(self.inputs)} -> {tensors(self.outputs)}>"


def load_symbolic(path: Path, *, dims: Optional[Mapping[str, Union[int, str]]] = None, data_roots: Sequence[Path] = ()) -> SymbolicModel:
    """An ONNX model whose open dimensions are symbols, or text over symbols (.relay, .script, .py).

    ONNX is imported for several sizes; what these have in common is the model. It is an error where a part needs values of a
    run, or sizes differ in more than integers. `dims`: what a named dimension of ONNX is, a number or a term over others
    (`"past + sequence"`).
    """
    return SymbolicModel(_core.load_symbolic(path, {name: str(dim) for name, dim in (dims or {}).items()}, list(data_roots)))


def generalise(build: Callable[..., Model]) -> SymbolicModel:
    """What the models that a function builds for each size have in common; its parameters are the symbols.

        def mlp(n, d):
            x, w = collage.parameter("x", (n, d)), collage.parameter("w", (d, 4 * d))
            return collage.Model.of(collage.function([x, w], collage.call("nn.relu", collage.call("nn.matmul", x, w))))

        collage.generalise(mlp).text        # def @main(%x: Tensor[(n, d), float32], %w: Tensor[(d, 4 * d), float32]) …

    It is called for sizes from 1 to some thousands; `collage.Error` says that some do not fit.
    """

    def model(sizes: dict[str, int]) -> Any:
        try:
            return build(**sizes)._core
        except Error as error:
            return str(error)

    return SymbolicModel(_core.generalise(list(inspect.signature(build).parameters), model))
