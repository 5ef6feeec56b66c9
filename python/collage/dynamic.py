"""Programs of models whose shapes are not known before they run (docs/dynamic.md)."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence, Union

from . import _core
from ._core import DynamicTensorInfo, Specialisation
from ._options import words

Array = Any


class _ForManyShapes:
    """`program(array, ...)` or `program.run({"name": array})`, of whatever shapes. Arrays and results are those of `collage.Program`."""

    _core: Any
    inputs: list[DynamicTensorInfo]
    outputs: list[DynamicTensorInfo]

    def _bind(self, core: Any) -> None:
        self._core = core
        self.inputs = core.inputs
        self.outputs = core.outputs

    def __call__(self, *arrays: Array) -> Any:
        """The output, or a tuple where there are several; inputs by position."""
        outputs = self._core.run(list(arrays))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Outputs by name."""
        return dict(zip((info.name for info in self.outputs), self._core.run(self._in_order(inputs))))

    def reset(self) -> None:
        """States become empty."""
        self._core.reset()

    def _in_order(self, inputs: Mapping[str, Array]) -> list[Array]:
        from . import _pick

        return _pick(inputs, [info.name for info in self.inputs], "input")

    def __repr__(self) -> str:
        shown = (", ".join(f"{i.name}: {i.dtype}[{', '.join(i.dims)}]" for i in infos) for infos in (self.inputs, self.outputs))
        return "<collage.{} ({}) -> ({})>".format(type(self).__name__, *shown)


class DynamicProgram(_ForManyShapes):
    """Compiled for the shapes that come, once for each: `program(array, ...)` or `program.run({"name": array})`.

    Arrays and results are those of `collage.Program`. Runs take turns.
    """

    def __init__(self, core: _core.DynamicProgram) -> None:
        self._bind(core)

    def prepare(self, inputs: Mapping[str, Array]) -> None:
        """Compiles what these inputs need, by measured cost where there are several targets, and forgets the results."""
        self._core.prepare(self._in_order(inputs))

    def prepare_buckets(self) -> None:
        """Likewise for every combination of the buckets' sizes; every dimension must have some."""
        self._core.prepare_buckets()

    def save(self, path: Any, signing_key: str = "") -> None:
        """What was compiled so far, as a file for `load_dynamic_artifact`; `signing_key` as in `Program.save`.

        Where the model runs in stages, the file holds it too, and is for `load_dynamic`.
        """
        self._core.save(path, signing_key)

    @property
    def specialisations(self) -> list[Specialisation]:
        """What was compiled so far."""
        return self._core.specialisations


class LoadedDynamicProgram(_ForManyShapes):
    """What `DynamicProgram.save` wrote: the shapes that it was compiled for run, others are a `collage.Error`. Runs take turns."""

    def __init__(self, core: _core.LoadedDynamicProgram) -> None:
        self._bind(core)

    def beside(self) -> LoadedDynamicProgram:
        """Another with the same weights and code, and with states of its own, that runs at the same time."""
        return LoadedDynamicProgram(self._core.beside())

    @property
    def specialisations(self) -> list[str]:
        """The shapes of each: "mask (1, 64), tokens (1, 64)"."""
        return self._core.specialisations


def load_dynamic_artifact(path: Any, *, public_key: Optional[str] = None) -> LoadedDynamicProgram:
    """A program that `DynamicProgram.save` or `collage compile --bucket` wrote; nothing is compiled or measured.

    `public_key` as in `collage.load`.
    """
    return LoadedDynamicProgram(_core.load_dynamic_artifact(path, public_key))


def load_dynamic(
    path: Any,
    *,
    targets: Union[str, Sequence[str]] = (),
    exclude: Union[str, Sequence[str]] = (),
    threads: int = 0,
    effort: str = "default",
    database: Any = "",
    worker: Any = "",
    frozen_costs: bool = False,
    strict_accuracy: bool = False,
    max_error: float = 0,
    compile_on_demand: bool = True,
    buckets: Optional[Mapping[str, Sequence[int]]] = None,
    padding: Optional[Mapping[str, float]] = None,
    states: Optional[Mapping[str, str]] = None,
    data_roots: Sequence[Any] = (),
    public_key: Optional[str] = None,
) -> DynamicProgram:
    """A program of an ONNX model with dimensions that inputs decide, shapes that depend on values, or control flow.

    Or of a file that `save` wrote of a model that runs in stages, which holds the model: targets, accuracy, buckets and states
    are the file's, what it holds is not compiled again, and `public_key` is as in `collage.load`.

    `buckets`: sizes to compile for, by named dimension; tensors are padded to the smallest that holds them.
    `padding`: what an input is padded with, where it is not 0. `states`: inputs that the program keeps from run to run, with
    the output that each grows by. `data_roots` as in `collage.load`. The others are those of `Model.compile`.
    """
    return DynamicProgram(_core.load_dynamic(
        path, targets=words(targets), exclude=words(exclude), threads=threads, effort=effort,
        database=database, worker=worker, frozen_costs=frozen_costs, strict_accuracy=strict_accuracy, max_error=max_error,
        compile_on_demand=compile_on_demand, buckets={name: list(sizes) for name, sizes in (buckets or {}).items()},
        padding=dict(padding or {}), states=dict(states or {}), data_roots=list(data_roots),
        public_key=public_key or ""))
