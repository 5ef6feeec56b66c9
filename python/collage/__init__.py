"""Collage: runs a trained model with the backends that were measured fastest for each part of it.

    import collage, numpy as np
    program = collage.load("resnet50.onnx").compile(progress=print)
    scores = program(np.zeros((1, 3, 224, 224), np.float32))
    program.save("resnet50.collage")
    program = collage.load("resnet50.collage")

docs/python.md of the project describes everything here.
"""

from __future__ import annotations

import atexit as _atexit
import functools as _functools
import html as _html
import io as _io
import json as _json
import os as _os
import weakref as _weakref
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence, Union

from . import _halide

_halide.load()

from . import _core, passes, rules, te, torch_labels
from ._core import DeviceTensor, Expression, ExternalModule, ModuleFunction, SharedWeights, Specialisation, TensorInfo, TensorProgram, __version__, allocate_on, copy_to, empty
from ._error import Error, ErrorCode
from ._options import make_options as _make_options
from .builder import Builder
from .functions import ArrayType, register_function, register_intrinsic, register_node
from .graph import call, constant, function, item, parameter, tuple_of
from .passes import Pipeline
from .symbolic import SymbolicModel, generalise, load_symbolic

__all__ = ["ArrayType", "Builder", "DeviceTensor", "Error", "ErrorCode", "Expression", "ExternalModule", "Model", "ModuleFunction", "Pipeline", "Program", "Progress", "Report",
           "SharedWeights", "Specialisation", "SymbolicModel", "TensorInfo", "TensorProgram", "Tuning", "__version__", "allocate_on", "call", "check_operator",
           "constant", "copy_to", "define_operator", "empty", "from_exported", "function", "generalise", "item", "load", "load_dynamic", "load_plugin", "load_symbolic",
           "parameter", "parse", "passes", "register_function", "register_intrinsic", "register_node", "rules", "te", "tuple_of"]

Path = Union[str, "_os.PathLike[str]"]
Bytes = Union[bytes, bytearray, memoryview]
_ANY = "def @main(%x: Tensor[(1), float32]) { %x }"
Array = Any  # NumPy's, or any tensor in CPU memory that speaks DLPack; or a DeviceTensor


class Progress(NamedTuple):
    """How far a phase of a compilation is: `done` of `total` pieces, of which `cached` needed no work and `failed` gave nothing usable."""

    phase: str
    done: int
    total: int
    cached: int
    failed: int

    def __str__(self) -> str:
        return f"{self.phase} {self.done}/{self.total} ({self.cached} known, {self.failed} refused)"


class Report(dict):
    """What a program says of itself, in the form of docs/report-schema.json; shown in words and as a page. Needs no program."""

    @classmethod
    def load(cls, path: Path) -> Report:
        """One that `save` or the command's --json wrote."""
        with open(path, encoding="utf-8") as file:
            return cls(_json.load(file))

    def explain(self, kernel: str = "") -> str:
        """All kernels and their runners-up; or one in full, by its name or an ONNX node's."""
        return _core.explain_report(_json.dumps(self), kernel)

    def html(self) -> str:
        """One page that needs nothing else: the graph, its kernels, what they cost."""
        return _core.report_page(_json.dumps(self))

    def save(self, path: Path) -> None:
        """Writes the page where the name ends with .html, else the JSON that `collage diff` compares."""
        text = self.html() if _os.fspath(path).endswith(".html") else _json.dumps(self, indent=1)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def _repr_html_(self) -> str:
        page = _html.escape(self.html(), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 640px; border: 0"></iframe>'


class Program:
    """A compiled program: `program(array, ...)` or `program.run({"name": array})`.

    Any thread may run it. Runs of one that was compiled here, or that takes several shapes, take turns; of any other as many go
    on at once as it has contexts. Arrays are NumPy's or any tensors in CPU memory that speak DLPack; results are torch tensors where the first
    input is one, else NumPy arrays. Nothing is copied but inputs whose memory is not aligned to 64 bytes or not contiguous
    (`collage.empty` makes NumPy arrays that are).
    """

    def __init__(self, core: _core.Program, report_text: Optional[Callable[[], str]] = None) -> None:
        self._core = core
        self._report_text = report_text or core.report_text
        self.inputs: list[TensorInfo] = core.inputs
        self.outputs: list[TensorInfo] = core.outputs
        self._names = [info.name for info in self.inputs]
        self._run = core.run

    def __call__(self, *arrays: Array, **named: Array) -> Any:
        """The output, or a tuple where there are several; inputs by position, or by name."""
        outputs = self._run(list(arrays) if not named else self._in_order(named, arrays))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run(self, inputs: Mapping[str, Array], outputs: Optional[Mapping[str, Array]] = None) -> dict[str, Array]:
        """Outputs by name. `outputs`: contiguous, writable arrays to compute into, one for each."""
        ordered = self._in_order(inputs)
        if outputs is not None:
            names = [info.name for info in self.outputs]
            self._core.run_into(ordered, _pick(outputs, names, "output"))
            return dict(outputs)
        return {info.name: array for info, array in zip(self.outputs, self._run(ordered))}

    @_functools.cached_property
    def report(self) -> Report:
        """What was chosen and why."""
        return Report(_json.loads(self._report_text()))

    def explain(self, kernel: str = "") -> str:
        """Why this program: all kernels and their runners-up; or one kernel in full."""
        return self.report.explain(kernel)

    @property
    def module(self) -> Model:
        """The model as this program computes it, each kernel stated: compiled again it is the same, without searching or measuring."""
        return Model(self._core.module())

    def save(self, path: Path, signing_key: str = "") -> None:
        """Writes it as an artifact (.collage), which `collage.load`, the command and libcollage_runtime run without compiling.

        Of `load_dynamic` what was compiled so far is written; where the model runs in stages, the file holds it too, and is for
        `load_dynamic`. `signing_key`: a private key of Ed25519 in PEM that signs the file (docs/security.md).
        """
        if not _os.fspath(path).endswith(".collage"):
            raise Error(ErrorCode.USAGE, f"{_os.fspath(path)}: an artifact's name ends in .collage")
        self._core.save(path, signing_key)

    @property
    def specialisations(self) -> list[Specialisation]:
        """What it consists of; of `load_dynamic` what was compiled so far."""
        return self._core.specialisations

    def prepare(self, inputs: Mapping[str, Array]) -> None:
        """Of `load_dynamic`: compiles what these inputs need, by measured cost where there are several targets, and forgets the results."""
        self._core.prepare(self._in_order(inputs))

    def prepare_buckets(self) -> None:
        """Likewise for every combination of the buckets' sizes; every dimension must have some."""
        self._core.prepare_buckets()

    def reset(self) -> None:
        """States become empty."""
        self._core.reset()

    def replace(self, other: Program) -> None:
        """Calls of this program that begin from now on run the other one, of the same inputs and outputs."""
        if [repr(info) for info in self.inputs + self.outputs] != [repr(info) for info in other.inputs + other.outputs]:
            raise Error(ErrorCode.USAGE, "replace: the programs differ in their inputs or outputs")
        self._core, self._run, self._report_text = other._core, other._run, other._report_text
        self.__dict__.pop("report", None)

    def beside(self) -> Program:
        """Of one that was loaded: another with the same weights and code, and with states of its own, that runs at the same time."""
        return Program(self._core.beside(), self._report_text)

    def _repr_html_(self) -> str:
        return self.report._repr_html_()

    def __repr__(self) -> str:
        return f"<collage.Program {_signature(self.inputs)} -> {_signature(self.outputs)}>"

    def _in_order(self, named: Mapping[str, Array], first: Sequence[Array] = ()) -> list[Array]:
        return [*first, *_pick(named, self._names[len(first):], "input")]


_tunings: _weakref.WeakSet[Tuning] = _weakref.WeakSet()


@_atexit.register
def _end_tunings() -> None:
    for tuning in list(_tunings):
        tuning.stop()
        try:
            tuning.wait()
        except Error:
            pass  # of a compilation that nobody waits for


class Tuning:
    """What `Model.tune` does in the background; it ends when this is deleted. What was measured is kept."""

    def __init__(self, core: _core.Tuning) -> None:
        self._core = core
        _tunings.add(self)

    @property
    def done(self) -> bool:
        """Whether nothing is left to measure, or its time is over."""
        return self._core.done

    def wait(self) -> None:
        """Returns once it is done; an error ended it early."""
        self._core.wait()

    def stop(self) -> None:
        """Asks it to end, soon; `wait` returns then."""
        self._core.stop()


class Model:
    """A model at any stage: functions of operators, tensor programs and functions of libraries (docs/modules.md). Immutable."""

    def __init__(self, core: _core.Model) -> None:
        self._core = core
        self.inputs: list[TensorInfo] = core.inputs
        self.outputs: list[TensorInfo] = core.outputs

    @staticmethod
    def of(function: Expression) -> Model:
        """The model that a function of a graph is, as it is, not simplified."""
        return Model(_core.parse(_ANY, [], {}).with_function("main", function))

    def compile(
        self,
        *,
        targets: Union[str, Sequence[str]] = (),
        exclude: Union[str, Sequence[str]] = (),
        pin: Union[str, Sequence[str]] = (),
        devices: str = "",
        memory: Union[str, Sequence[str]] = (),
        threads: int = 0,
        effort: str = "",
        budget: float = 0,
        database: Path = "",
        config: Path = "",
        worker: Path = "",
        frozen_costs: bool = False,
        strict_accuracy: bool = False,
        always_measure: bool = False,
        max_error: float = 0,
        shared_weights: Optional[SharedWeights] = None,
        costs: Optional[Callable[[str, str, str], Optional[float]]] = None,
        check_inputs: Sequence[Mapping[str, Array]] = (),
        progress: Optional[Callable[[Progress], Any]] = None,
    ) -> Program:
        """A program in seconds, verified; after `budget` seconds of measuring a faster one, if that finds any.

        With `effort` ("fast", "default", "max") all costs are measured that could matter, for as long as it takes; the plan is known from
        then on. Arguments are the command's flags (docs/command.md). `costs` gives the seconds of a kernel, of its function as text, its target and
        its variant, in place of measuring, or None where it is measured. `progress` is called a few times a second at most;
        an exception that it raises, or Ctrl-C, ends the compilation, and what was measured is kept.
        """
        heard = None if progress is None else lambda *values: progress(Progress(*values))
        names = [info.name for info in self.inputs]
        options = _make_options(
            targets=targets, exclude=exclude, pin=pin, devices=devices, memory=memory, threads=threads, effort=effort,
            budget=budget, database=database, config=config, worker=worker, frozen_costs=frozen_costs,
            strict_accuracy=strict_accuracy, always_measure=always_measure, max_error=max_error,
            shared_weights=shared_weights, costs=costs)
        return Program(self._core.compile(options, check_inputs=[_pick(inputs, names, "input") for inputs in check_inputs], progress=heard))

    def tune(self, better: Callable[[Program], Any], *, budget: Optional[float] = None, **options: Any) -> Tuning:
        """Measures in the background, beside a program that `compile` made, and calls `better` with each program that is faster and verified.

            tuning = model.tune(program.replace)

        It is called on a thread of its own. `budget`: seconds of measuring at most; `options`: those of `compile`. While this process
        computes anything else, measuring takes at most a twentieth of the time.
        """
        made = _make_options(**options)
        made.budget_seconds = budget
        return Tuning(self._core.tune(made, lambda core: better(Program(core))))

    def text(self, *, values: bool = True, types: bool = False) -> str:
        """Relay text, which `collage.parse` reads. Without `values` constants of more than 64 elements are there by type alone."""
        return self._core.text(values, types)

    def script(self, *, values: bool = True, types: bool = False) -> str:
        """TVM's script (`@ir_module`, `T.prim_func`, `R.function`), which `collage.parse` reads. Arguments as in `text`."""
        return self._core.script(values, types)

    def weights(self) -> list[Array]:
        """The constants meta[relay.Constant][0], [1] … of `text`, for `collage.parse`; they cannot be written to."""
        return self._core.weights()

    def save(self, path: Path) -> None:
        """Writes the text (.relay), and large constants beside it (.relay.bin); `collage.load` reads it."""
        self._core.save(path)

    def verify(self) -> None:
        """An error where the module is not legal: something unbound, or of another type than it has."""
        self._core.verify()

    @property
    def functions(self) -> list[ModuleFunction]:
        """What `text` defines: graph functions, tensor programs and functions of libraries."""
        return self._core.functions()

    @property
    def external_mods(self) -> list[ExternalModule]:
        """The programs that `passes.codegen` attached: `symbol`, `target`, `variant`, and `code`, the bytes of an artifact."""
        return self._core.external_modules()

    def work(self) -> tuple[float, float]:
        """What one run takes at the least: arithmetic operations, and bytes of inputs, weights and outputs."""
        return self._core.work()

    def function(self, name: str = "main") -> Expression:
        """A function of the graph, with its `parameters` and `body`."""
        return self._core.function(name)

    def global_function(self, name: str) -> Expression:
        """A reference to a function of the module, to be called."""
        return self._core.global_function(name)

    def with_function(self, name: str, function: Expression) -> Model:
        """With that function in place of the one of that name, or besides the others."""
        return Model(self._core.with_function(name, function))

    def rewrite(self, replace: Callable[..., Optional[Expression]], pattern: str = "") -> Model:
        """With calls replaced by what `replace` gives for them: an expression of the same type, or None to keep the call.

        It sees each call once, with the arguments that it has by then, those before it first. With a `pattern` it sees the root
        of every match, and as keyword arguments what each $name of the pattern is; names of alternatives that were not taken
        are left out. Primitive functions are not entered.
        """
        return Model(self._core.rewrite(replace, pattern))

    def __repr__(self) -> str:
        return f"<collage.Model {_signature(self.inputs)} -> {_signature(self.outputs)}>"


def load(
    source: Union[Path, Bytes],
    *,
    shapes: Optional[Mapping[str, Sequence[int]]] = None,
    dims: Optional[Mapping[str, int]] = None,
    contexts: int = 0,
    simplify: bool = True,
    data_roots: Sequence[Path] = (),
    public_key: Optional[str] = None,
) -> Any:
    """A `Model` of ONNX (.onnx, external data beside it) or text (.relay, script as .script or .py); a `Program` of an artifact (.collage, or its bytes).

    `shapes`: of a model's inputs by name, `dims`: of symbolic dimensions by name, for models with dynamic dimensions.
    `contexts`: how many runs of a program may go on at once, each with its own memory for intermediate results; 0: as many as
    the cores that this process may use have room for. `simplify=False`: the model as it was imported, for passes of one's own.
    `data_roots`: folders that symbolic links of external data may lead to, besides the model's own and those of a cache of
    Hugging Face that it is in. `public_key`: of Ed25519, in PEM; an artifact that its owner did not sign is refused.
    """
    if isinstance(source, (bytes, bytearray, memoryview)) or _os.fspath(source).endswith(".collage"):
        if shapes or dims:
            raise Error(ErrorCode.USAGE, "shapes, dims: those of an artifact are fixed")
        return _loaded_program(source, contexts, public_key)
    if contexts:
        raise Error(ErrorCode.USAGE, "contexts: of artifacts (.collage) alone")
    return Model(_core.load(source, {name: list(shape) for name, shape in (shapes or {}).items()}, dict(dims or {}), simplify, list(data_roots)))


def load_dynamic(
    path: Union[Path, SymbolicModel],
    *,
    compile_on_demand: bool = True,
    buckets: Optional[Mapping[str, Sequence[int]]] = None,
    padding: Optional[Mapping[str, float]] = None,
    states: Optional[Mapping[str, str]] = None,
    data_roots: Sequence[Path] = (),
    public_key: Optional[str] = None,
    **options: Any,
) -> Program:
    """A `Program` of an ONNX model with dimensions that inputs decide, shapes that depend on values, or control flow, or of text
    (.relay, .script, .py) over symbols, or of a `SymbolicModel` (docs/dynamic.md).

    It is compiled for the shapes that come, once for each. Or of a file that `save` wrote of a model that runs in stages, which
    holds the model: targets, accuracy, buckets and states are the file's, what it holds is not compiled again, and `public_key`
    is as in `collage.load`.

    `buckets`: sizes to compile for, by named dimension; tensors are padded to the smallest that holds them.
    `padding`: what an input is padded with, where it is not 0. `states`: inputs that the program keeps from run to run, with
    the output that each grows by. `data_roots` as in `collage.load`. The others are those of `Model.compile`.
    """
    dynamic = _core.DynamicOptions()
    given = dict(program=_make_options(**options), compile_on_demand=compile_on_demand, padding=dict(padding or {}),
                 buckets={name: list(sizes) for name, sizes in (buckets or {}).items()}, states=dict(states or {}),
                 data_roots=list(data_roots), public_key=public_key or "")
    for name, value in given.items():
        setattr(dynamic, name, value)
    if isinstance(path, SymbolicModel):
        return Program(_core.compile_symbolic(path._core, dynamic))
    return Program(_core.load_dynamic(path, dynamic))


def from_exported(program: Any, *, shapes: Optional[Mapping[str, Sequence[int]]] = None) -> Model:
    """A `Model` of what `torch.export.export` gave, its weights as constants. What Collage has no operator for is an error that names it.

    `shapes`: of inputs by name, where dimensions vary; without, the sizes that the program was exported with.
    """
    from . import torch_backend

    return torch_backend.from_exported(program, shapes or {})


def parse(text: str, weights: Sequence[Array] = (), *, dims: Optional[Mapping[str, int]] = None) -> Model:
    """A `Model` of Relay text or script as it is, not simplified; `weights`: the constants that it gives by type alone, as `Model.weights` gives them.

    `dims`: the values of the text's symbols (docs/modules.md), by name.
    """
    return Model(_core.parse(text, list(weights), dict(dims or {})))


def load_plugin(library: Path) -> None:
    """Loads a shared library of backends, operators or functions (the command's --plugin), for models compiled afterwards."""
    _core.load_plugin(library)


def define_operator(name: str, program: str, *, onnx: str = "", cases: Sequence[Mapping[str, int]] = ()) -> None:
    """An operator of the user's own, for models that are loaded afterwards: what it computes as a tensor program over symbols.

        collage.define_operator("my.swiglu", onnx="com.example::SwiGlu", program='''program (n, d) {
            param X: float32[n, 2 * d];
            result Y[i:n, j:d] = X[i, j] / (1.0f + exp(-X[i, j])) * X[i, d + j];
        }''')

    `onnx`: "domain::Operator", the nodes that mean it. `cases`: values of the symbols that `check_operator` tests it with; without
    them some are made up.
    """
    _core.define_operator(name, program, onnx, [dict(case) for case in cases])


def check_operator(name: str, *, targets: Sequence[str] = ()) -> None:
    """Compiles a defined operator for each of its cases with each of the targets (default: all) and compares it with its reference."""
    _core.check_operator(name, list(targets))


def _loaded_program(source: Union[Path, Bytes], contexts: int, public_key: Optional[str]) -> Program:
    if public_key is not None and not isinstance(source, (bytes, bytearray, memoryview)):
        try:
            with open(source, "rb") as file:  # what is compared with the signature is what is used, report included
                source = file.read()
        except OSError as wrong:
            raise Error(ErrorCode.USAGE, str(wrong)) from wrong
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
        program = _core.load_program_bytes(data, public_key, contexts)
        report = None if any(info.dims for info in program.inputs) else _embedded_report(_io.BytesIO(data))
        report_text = (lambda: report) if report else None
    else:
        program, path = _core.load_program(source, contexts), _os.path.abspath(source)
        report_text = lambda: _embedded_report(path)
    return Program(program, report_text)


def _embedded_report(artifact: Any) -> str:
    """Of a file or its name: an artifact is a ZIP archive (docs/artifact.md)."""
    import zipfile

    try:
        with zipfile.ZipFile(artifact) as archive:
            return archive.read("report.json").decode()
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as wrong:
        raise Error(ErrorCode.BAD_MODEL, f"the report in the artifact cannot be read: {wrong}") from wrong


def _pick(named: Mapping[str, Array], names: Sequence[str], role: str) -> list[Array]:
    if len(named) == len(names):
        try:
            return [named[name] for name in names]
        except KeyError:
            pass
    missing, surplus = [n for n in names if n not in named], [n for n in named if n not in names]
    told = [f"missing: {', '.join(missing)}"] * bool(missing) + [f"unknown: {', '.join(surplus)}"] * bool(surplus)
    raise Error(ErrorCode.BAD_MODEL, f"{role}s {'; '.join(told)}")


def _signature(infos: Sequence[TensorInfo]) -> str:
    shapes = [f"[{', '.join(info.dims)}]" if info.dims else str(list(info.shape)) for info in infos]
    return "(" + ", ".join(f"{info.name}: {info.dtype}{shape}" for info, shape in zip(infos, shapes)) + ")"
