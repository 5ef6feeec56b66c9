"""A part of PyTorch's graph that Collage computes: its weights, its programs, and how a graph of ATen operators becomes a function."""

from __future__ import annotations

import collections
import logging
import threading
from typing import Any, Callable, Mapping, Optional, Sequence

import torch
from torch.fx import GraphModule, Node

import collage

from . import _core, aten

log = logging.getLogger("collage.torch")

_MOST_PROGRAMS = 64  # of one part: the least recently used goes
_MOST_CHANGES = 2  # a weight that changes more often is an input
_QUICK = {"targets": "native", "effort": "fast"}
_SYMBOLIC = {"targets": "native -symbolic=only"}  # kernels that serve many shapes, where there are such
_CALLS_UNTIL_COMPILED = 3
_LITTLE_WORK = 1e7  # operations and bytes: a model of less is done in some 0.1 ms, and measuring its kernels costs more than it can win


def placeholders(module: GraphModule) -> list[Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def results_of(module: GraphModule) -> list[Any]:
    (results,) = next(node for node in reversed(module.graph.nodes) if node.op == "output").args
    return list(results) if isinstance(results, (tuple, list)) else [results]


def order_of(meta: torch.Tensor) -> Optional[list[int]]:
    """The dimensions, slowest first; None where elements share memory, or leave some of it out."""
    shape, strides = aten.shape_of(meta), [aten.concrete(stride) for stride in meta.stride()]
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], d) if shape[d] > 1 else (-strides[d] if strides[d] else 0, d))
    step = 1
    for d in reversed(order):
        if shape[d] == 1:
            continue
        if strides[d] != step:
            return None
        step *= shape[d]
    return order


def tell(module: GraphModule, why: str) -> None:
    count = sum(node.op.startswith("call_") for node in module.graph.nodes)
    log.warning("a graph of %d operators runs in PyTorch: %s", count, why)


class Part:
    """A graph of supported nodes alone; its programs are made when they are first needed, with the tensors of that call.

    Where shapes vary the first ones are compiled as the options ask. Others run in PyTorch until they have come several times, and are then
    compiled without measuring, unless their costs are known; all programs share one set of weights.
    """

    def __init__(self, module: GraphModule, weights: set[Node], options: dict[str, Any], otherwise: Optional[Callable[[], Callable[..., Any]]] = None) -> None:
        self._module = module
        self._otherwise = otherwise  # makes what computes the graph if a program cannot be compiled; none: PyTorch does
        self._instead: Optional[Callable[..., Any]] = None  # what it made
        self._options = options
        self._inputs = placeholders(module)
        self._single = not isinstance(next(node for node in reversed(module.graph.nodes) if node.op == "output").args[0], (tuple, list))
        self._frozen = {i for i, node in enumerate(self._inputs) if node in weights and order_of(node.meta["val"]) is not None}
        self._sized = [i for i, node in enumerate(self._inputs) if _is_symbolic(node.meta["val"])]
        self._changes: collections.Counter[int] = collections.Counter()
        self._calls: collections.Counter[Any] = collections.Counter()  # of shapes that no program has
        self._programs: collections.OrderedDict[Any, Callable[..., Any]] = collections.OrderedDict()
        self._weights: Optional[_Weights] = None
        self._making = threading.Lock()

    def __call__(self, *inputs: Any) -> Any:
        key = tuple([value.shape if isinstance(value, torch.Tensor) else value for value in [inputs[i] for i in self._sized]])
        program = self._programs.get(key)
        if program is None or (self._weights is not None and self._weights.changed(inputs)):
            program = self._make(key, inputs)
        if not isinstance(program, _Program):
            return program(*inputs)
        results = program(inputs)
        return results[0] if self._single else results

    def _make(self, key: Any, inputs: Sequence[Any]) -> Callable[..., Any]:
        with self._making:
            if self._instead is not None:
                return self._instead
            changed = self._weights.changed(inputs) if self._weights is not None else []
            if changed:
                log.info("weights changed: compiling anew")
                self._changes.update(changed)
                self._frozen -= {i for i in changed if self._changes[i] > _MOST_CHANGES}
                self._programs.clear()
            if changed or self._weights is None:
                self._weights = _Weights(inputs, self._frozen)
            program = self._programs.get(key)
            if program is not None:
                self._programs.move_to_end(key)
                return program
            first = not self._programs
            self._calls[key] += 1
            if not first and self._calls[key] < _CALLS_UNTIL_COMPILED:
                return self._module.forward
            try:
                program = _Program(self._module, inputs, self._weights)
                little = not self._options and sum(program.model.work()) < _LITTLE_WORK
                if little and self._calls[key] == 1:  # what is called once is done before it is compiled
                    return self._module.forward
                program.compile({"shared_weights": self._weights.shared, **self._options}, first, little)
            except (aten.Unsupported, collage.Error) as wrong:
                if self._otherwise is not None:
                    log.info("no operators by labels: %s", one_line(wrong))
                    self._instead = self._otherwise()
                    return self._instead
                tell(self._module, one_line(wrong))
                program = self._module.forward
            self._programs[key] = program
            if len(self._programs) > _MOST_PROGRAMS:
                self._programs.popitem(last=False)
            return program


class _Weights:
    """The tensors that are constants of a part's programs, as they are at one moment."""

    def __init__(self, inputs: Sequence[Any], frozen: set[int]) -> None:
        self.constants = {i: aten.Empty() if inputs[i].numel() == 0 else aten.constant(inputs[i]) for i in sorted(frozen)}
        self.shared = collage.SharedWeights()
        self._seen = [(i, inputs[i]._version, inputs[i].data_ptr()) for i in sorted(frozen)]
        self._held = [inputs[i].detach() for i in sorted(frozen)]  # keeps the memory that is compared
        self._contents = _core.Contents([(held.data_ptr(), held.nbytes) for held in self._held])

    def changed(self, inputs: Sequence[Any]) -> list[int]:
        """Those that are others now: replaced, written, or (as far as samples show it) written behind PyTorch's back."""
        changed = [i for i, version, pointer in self._seen if inputs[i]._version != version or inputs[i].data_ptr() != pointer]
        return changed or [self._seen[at][0] for at in self._contents.changed()]


class _Program:
    """A part for one set of shapes."""

    def __init__(self, module: GraphModule, inputs: Sequence[Any], weights: _Weights) -> None:
        elsewhere = {str(value.device) for value in inputs if isinstance(value, torch.Tensor) and value.device.type != "cpu"}
        if elsewhere:
            raise aten.Unsupported(f"tensors on {', '.join(sorted(elsewhere))}")
        function, self._given, self._views = function_of(module, inputs, weights.constants, laid_out=True)
        if not self._given:
            raise aten.Unsupported("it reads no input")
        self.model = collage.passes.simplify()(collage.Model.of(function))

    def compile(self, options: dict[str, Any], first: bool, little: bool) -> None:
        """As the options ask; a small model, and further shapes whose costs are not known, without measuring."""
        if first and not little:
            self.program = self.model.compile(**options)
        else:
            self.program = self._known(options) or self.model.compile(**{**_QUICK, **options, **({} if first else _SYMBOLIC)})
        self._run = self.program._core.run

    def _known(self, options: dict[str, Any]) -> Optional[collage.Program]:
        try:
            return self.model.compile(**{**options, "frozen_costs": True})
        except collage.Error:  # costs that nobody measured
            return None

    def __call__(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        given = []
        for i, order in self._given:
            value = inputs[i]
            if value.requires_grad:
                value = value.detach()
            given.append(value if order is None else value.permute(order))
        results = self._run(given)
        for i, shape, strides in self._views:
            results[i] = results[i].as_strided(shape, strides)
        return results


def function_of(module: GraphModule, inputs: Sequence[Any], constants: Mapping[int, Any], laid_out: bool) -> tuple[Any, list[Any], list[Any]]:
    """The graph as a function of Collage; which inputs it takes, and in which order of dimensions; which results are views, and which.

    `constants` stand for some of the inputs. `laid_out`: inputs and results are in the order of dimensions in which they lie in memory; else all are contiguous.
    """
    lowering, parameters, given, results = aten.Lowering(labels=laid_out), [], [], []
    for i, (node, value) in enumerate(zip(placeholders(module), inputs)):
        if not isinstance(value, torch.Tensor):
            lowering.values[node] = value
        elif i in constants:
            lowering.values[node] = constants[i]
        elif value.numel() == 0:
            lowering.values[node] = aten.Empty()
        else:
            order = order_of(value)
            if order is None or order == sorted(order):
                parameter = lowering.values[node] = collage.parameter(node.name, list(value.shape), aten.dtype_of(value))
                given.append((i, None))
            else:  # as it lies in memory
                parameter = collage.parameter(node.name, [value.shape[d] for d in order], aten.dtype_of(value))
                lowering.values[node] = collage.call("transpose", parameter, axes=[order.index(d) for d in range(len(order))])
                given.append((i, order))
            parameters.append(parameter)
    for node in module.graph.nodes:
        if node.op == "get_attr":
            lowering.values[node] = aten.constant(getattr(module, node.target))
        elif node.op == "call_function":
            lowering.values[node] = lowering.convert(node)
        elif node.op != "placeholder" and node.op != "output":
            raise aten.Unsupported(f"{node.op} {node.target}")
    views = []
    for i, node in enumerate(results_of(module)):
        result, meta = lowering.values[node], node.meta["val"]
        order, shape = order_of(meta) if laid_out else list(range(len(result.shape))), list(result.shape)
        strides = _strides(shape, order) if _is_symbolic(meta) else list(meta.stride())
        if laid_out and strides != _strides(shape, range(len(shape))):
            views.append((i, shape, strides))
        if order != sorted(order):
            result = collage.call("transpose", result, axes=order)
        results.append(collage.call("copy", result) if result.kind in ("parameter", "constant") else result)
    return collage.function(parameters, results[0] if len(results) == 1 else collage.tuple_of(*results)), given, views


def _strides(shape: Sequence[int], order: Sequence[int]) -> list[int]:
    """Of a dense tensor whose dimensions lie in that order, slowest first."""
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        strides[d], step = step, step * max(1, shape[d])
    return strides


def _is_symbolic(meta: Any) -> bool:
    return isinstance(meta, torch.SymInt) or (isinstance(meta, torch.Tensor) and any(isinstance(extent, torch.SymInt) for extent in meta.shape))


def one_line(wrong: BaseException) -> str:
    text = " ".join(str(wrong).split())
    return text if len(text) <= 400 else text[:400] + " …"
