"""Passes, each from a model to a model, and pipelines of them with passes of one's own in between (docs/modules.md).

    from collage import passes

    def swap(model):
        return model.rewrite(lambda call: collage.call("nn.relu", *call.arguments) if call.op == "clip" else None)

    model = passes.Pipeline([passes.partition_for("onednn"), swap, passes.partition_for("native")])(model)

What is here gives passes: `simplify()` is one, and `simplify()(model)` runs it. A function with `Primitive=1` is one kernel that
somebody decided on: no pass here changes it or makes it a part of another.
"""

from __future__ import annotations

import os as _os
from typing import TYPE_CHECKING, Any, Callable, Sequence, Union

from . import _core
from ._core import MeasuringTask
from ._error import Error, ErrorCode
from ._options import make_options

if TYPE_CHECKING:
    from . import Model

Path = Union[str, "_os.PathLike[str]"]


class Pass:
    """A pass of Collage's, with its `name`."""

    def __init__(self, core: _core.ModelPass) -> None:
        self._core = core
        self.name: str = core.name

    def __call__(self, model: Model) -> Model:
        return type(model)(self._core.run(model._core))

    def __repr__(self) -> str:
        return f"<collage.passes.Pass {self.name}>"


class Pipeline:
    """Runs passes in order, and is one itself: Collage's, other pipelines, and any function from a model to a model.

    The model is verified before the first one and after each. An error names the pass; what a function raises that is no
    `collage.Error` goes on to the caller as it is.
    """

    def __init__(self, passes: Sequence[Callable[[Model], Model]], name: str = "pipeline") -> None:
        self.passes = list(passes)
        self.name = name
        for each in self.passes:
            if not callable(each):
                raise TypeError(f"a pass is a function from a model to a model, not {type(each).__name__}")

    def __call__(self, model: Model) -> Model:
        _verified(model, "module before the passes")
        for each in self.passes:
            name = getattr(each, "name", None) or getattr(each, "__name__", None) or type(each).__name__
            try:
                after = each(model)
            except Error as wrong:
                raise Error(wrong.code, f"pass {name}: {wrong}") from wrong
            if type(after) is not type(model):
                raise TypeError(f"pass {name}: gave {type(after).__name__}, not a collage.Model")
            _verified(after, f"module after pass {name}")
            model = after
        return model

    def __repr__(self) -> str:
        return f"<collage.passes.Pipeline {self.name} of {len(self.passes)}>"


def simplify() -> Pass:
    """All standard passes in their order: what `collage.load` does to a model."""
    return Pass(_core.simplify())


def standard(name: str) -> Pass:
    """One of `standard_names()`."""
    return Pass(_core.standard_pass(name))


def standard_names() -> list[str]:
    """The standard passes, in the order of the first run of each."""
    return _core.standard_pass_names()


def partition_for(
    target: str = "", *, exclude: Union[str, Sequence[str]] = (), pin: Union[str, Sequence[str]] = (), config: Path = "",
) -> Pass:
    """What one toolchain takes, by its rule, becomes its kernels; nothing is measured. The rest stays as it is.

    The arguments are those of `Model.compile`, which is then to be given the same target. A rule of one's own is an option of the
    target (`collage.rules.target`), or stands in `config` (docs/partitioning.md).
    """
    return Pass(_core.partition_for(make_options(targets=target, exclude=exclude, pin=pin, config=config)))


def codegen(target: str = "", *, threads: int = 0, max_error: float = 0, config: Path = "") -> Pass:
    """What that toolchain claimed is compiled now: calls become calls of an external function, whose code is attached to the model.

    `Model.external_mods` lists the code, text holds it, and compiling links it as it is. The target and `config` are those of
    `partition_for`, the other arguments those of `Model.compile`.
    """
    return Pass(_core.codegen(make_options(targets=target, threads=threads, max_error=max_error, config=config)))


def fuse_pattern(pattern: str, label: str, *, compiler: str = "") -> Pass:
    """Every match of a pattern (docs/patterns.md) becomes one kernel with that `Composite` label, of that toolchain or any.

    Matches that would overlap one chosen before, larger ones first, stay as they are.
    """
    return Pass(_core.fuse_pattern(pattern, label, compiler))


def annotate_devices(
    target: str = "", *, nodes: Union[str, Sequence[str]] = (), exclude: Union[str, Sequence[str]] = (), config: Path = "",
) -> Pass:
    """States where nodes run: those whose names match, `"encoder.*=gpu:1"`, or what one toolchain takes, on its device."""
    if nodes:
        return Pass(_core.annotate_nodes([nodes] if isinstance(nodes, str) else list(nodes)))
    return Pass(_core.annotate_devices(make_options(targets=target, exclude=exclude, config=config)))


def plan_devices(devices: str) -> Pass:
    """Finds a place for every value (docs/devices.md), on one of `"cpu:0, gpu:0, little=cpu:1"`; the first is where the rest is."""
    return Pass(_core.plan_devices(devices))


def partition_by_device(devices: str, *, all: bool = False) -> Pass:
    """What a planned model has together on a device becomes a function; with `all`, on the first device too."""
    return Pass(_core.partition_by_device(devices, all))


def apply_history_best(**options: Any) -> Pass:
    """Partitions as was measured, with the arguments of `Model.compile`; programs bring the schedules that were found.

    Measures nothing, and fails where a cost is missing.
    """
    return Pass(_core.apply_history_best(make_options(**options)))


def tune(filter: str = "", **options: Any) -> Pass:
    """Calls of programs whose names match become the fastest kernels that are measured, with the arguments of `Model.compile`.

    Each is measured alone, `effort="max"` searching all its schedules, and brings its schedule in the model's text. Weights are stored
    as the schedule reads them.
    """
    return Pass(_core.tune(filter, make_options(**options)))


def extract_tasks(model: Model, **options: Any) -> list[MeasuringTask]:
    """What compiling with these arguments needs costs of; `unknown` of a task's targets have none yet."""
    return _core.extract_tasks(model._core, make_options(**options))


def _verified(model: Model, where: str) -> None:
    try:
        model.verify()
    except Error as wrong:
        raise Error(wrong.code, f"{where}: {wrong}") from None
