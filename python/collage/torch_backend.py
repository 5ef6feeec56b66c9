"""Collage as a backend of torch.compile: torch.compile(model, backend="collage").

A graph that TorchDynamo captured goes torch.export -> ONNX -> Collage, at its first call with each set of shapes. Weights become
constants of the program. What cannot be had this way runs as PyTorch would have run it, and the logger "collage.torch" says
why, once a graph:

  - gradients are wanted: wrap the call in torch.no_grad() or torch.inference_mode()
  - the graph writes to its inputs, or gives something that is no tensor
  - PyTorch cannot export it, or Collage does not import what was exported
  - tensors are not in CPU memory

A weight that is changed in place, or replaced, is noticed: its graph is compiled anew.

Options: torch.compile(model, backend="collage", options={"effort": "fast"}) takes what collage.Model.compile does.
"""

from __future__ import annotations

import logging
import os
import tempfile
from typing import Any, Callable, Optional, Sequence

import torch

import collage

log = logging.getLogger("collage.torch")

_MOST_SHAPES = 8  # programs of one graph; after that many sets of shapes PyTorch runs the rest


class _Refused(Exception):
    """Why a graph is PyTorch's to run."""


def compile_fx(graph: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: Optional[dict[str, Any]] = None) -> Callable[..., Any]:
    """What torch.compile calls with each graph."""
    return _Compiled(graph, example_inputs, options or {})


class _Compiled:
    """One graph; its programs are made when they are first needed, with the tensors of that call."""

    def __init__(self, graph: torch.fx.GraphModule, example_inputs: Sequence[Any], options: dict[str, Any]) -> None:
        self._graph = graph
        self._options = options
        self._fixed = {i for i, value in enumerate(example_inputs) if _is_weight(value)}
        self._programs: dict[Any, Optional[_Program]] = {}
        self._told: set[str] = set()

    def __call__(self, *inputs: Any) -> Any:
        if torch.is_grad_enabled() and any(isinstance(value, torch.Tensor) and value.requires_grad for value in inputs):
            return self._fall_back("gradients are wanted: call it within torch.no_grad()", inputs)
        key = tuple((value.dtype, value.shape) if isinstance(value, torch.Tensor) else value
                    for i, value in enumerate(inputs) if i not in self._fixed)
        program = self._programs.get(key)
        if program is not None and not program.has_weights_of(inputs):
            log.info("weights changed: compiling anew")
            program = self._programs.pop(key, None) and None
        if program is None:
            if key in self._programs:
                return self._graph(*inputs)
            if len(self._programs) >= _MOST_SHAPES:
                return self._fall_back(f"more than {_MOST_SHAPES} sets of shapes", inputs)
            try:
                program = _Program(self._graph, inputs, self._fixed, self._options)
            except Exception as wrong:  # the exporter raises whatever it likes
                self._programs[key] = None
                return self._fall_back(_one_line(wrong), inputs)
            self._programs[key] = program
        return program(inputs)

    def _fall_back(self, why: str, inputs: Sequence[Any]) -> Any:
        if why not in self._told:
            self._told.add(why)
            log.warning("a graph of %d operators runs in PyTorch: %s", _count_of_operators(self._graph), why)
        return self._graph(*inputs)


class _Program:
    """A graph for one set of shapes, with the weights of one moment."""

    def __init__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any], fixed: set[int], options: dict[str, Any]) -> None:
        self._free = [i for i, value in enumerate(inputs) if i not in fixed and isinstance(value, torch.Tensor)]
        self._weights = [(i, inputs[i], inputs[i]._version) for i in sorted(fixed)]
        self._results = _results_of(graph)
        for value in inputs:
            if isinstance(value, torch.Tensor) and value.device.type != "cpu":
                raise _Refused(f"a tensor on {value.device}")
        model = _Frozen(graph, inputs, self._free, self._results)
        with tempfile.TemporaryDirectory(prefix="collage-torch-") as folder:
            path = os.path.join(folder, "graph.onnx")
            names = _export(model, tuple(inputs[i].detach() for i in self._free), path)
            # What the exported program does not read is no input of it.
            loaded = collage.load(path)
            known = [info.name for info in loaded.inputs]
            self._taken = [i for i, name in zip(self._free, names) if name in known]
            if [name for name in names if name in known] != known:
                raise _Refused(f"the exported inputs {known} are not the graph's")
            if not self._taken:
                raise _Refused("the graph reads none of its inputs")
            program = loaded.compile(**options)
        self.program = program
        self._run = program._core.run

    def has_weights_of(self, inputs: Sequence[Any]) -> bool:
        return all(inputs[i] is weight and weight._version == version for i, weight, version in self._weights)

    def __call__(self, inputs: Sequence[Any]) -> Any:
        given = [inputs[i].detach() if inputs[i].requires_grad else inputs[i] for i in self._taken]
        outputs = iter(self._run(given))
        return tuple(next(outputs) if is_tensor else None for is_tensor in self._results)


class _Frozen(torch.nn.Module):
    """The graph as a function of the tensors that are no weights, giving its results that are tensors."""

    def __init__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any], free: Sequence[int], results: Sequence[bool]) -> None:
        super().__init__()
        self.graph_module = graph
        self._free, self._results, self._count = list(free), list(results), len(inputs)
        self._plain = {}
        for i, value in enumerate(inputs):
            if i in self._free:
                continue
            if isinstance(value, torch.Tensor):
                self.register_buffer(f"weight_{i}", value.detach())
            else:
                self._plain[i] = value

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = dict(zip(self._free, tensors))
        values = [given[i] if i in given else self._plain[i] if i in self._plain else getattr(self, f"weight_{i}")
                  for i in range(self._count)]
        return tuple(value for value, is_tensor in zip(self.graph_module(*values), self._results) if is_tensor)


def _export(model: _Frozen, tensors: tuple[torch.Tensor, ...], path: str) -> list[str]:
    """Writes ONNX; gives the names of its inputs in the order of `tensors`."""
    names = [f"input_{i}" for i in range(len(tensors))]
    # This may run while TorchDynamo compiles another graph, whose state is none of torch.export's business.
    with torch._guards.tracing(None), torch.no_grad(), _quiet():
        exported = torch.export.export(model, tensors, strict=False)
        signature = exported.graph_signature
        if signature.buffers_to_mutate or getattr(signature, "user_inputs_to_mutate", None):
            raise _Refused("the graph writes to its inputs")
        torch.onnx.export(exported, (), path, dynamo=True, input_names=names, verbose=False, external_data=True)
    return names


class _quiet:
    """The exporter warns of what is no concern of who compiles."""

    def __enter__(self) -> None:
        import warnings

        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.simplefilter("ignore")

    def __exit__(self, *wrong: Any) -> None:
        self._warnings.__exit__(*wrong)


def _is_weight(value: Any) -> bool:
    """Parameters, and buffers of modules, which TorchDynamo marks."""
    return isinstance(value, torch.nn.Parameter) or (
        isinstance(value, torch.Tensor) and getattr(value, "_dynamo_static_input_type", None) is not None)


def _results_of(graph: torch.fx.GraphModule) -> list[bool]:
    """For each result whether it is a tensor (else None)."""
    (results,) = next(node for node in reversed(graph.graph.nodes) if node.op == "output").args
    if not isinstance(results, (tuple, list)):
        raise _Refused("the graph gives no tuple")
    kinds = []
    for result in results:
        if result is None:
            kinds.append(False)
            continue
        value = result.meta.get("example_value", result.meta.get("val")) if isinstance(result, torch.fx.Node) else result
        if not isinstance(value, torch.Tensor):
            raise _Refused("the graph gives something that is no tensor")
        if result.op == "placeholder":
            raise _Refused("the graph gives one of its inputs")
        kinds.append(True)
    return kinds


def _count_of_operators(graph: torch.fx.GraphModule) -> int:
    return sum(node.op.startswith("call_") for node in graph.graph.nodes)


def _one_line(wrong: BaseException) -> str:
    text = " ".join(str(wrong).split())
    if not isinstance(wrong, (_Refused, collage.Error)):
        text = f"{type(wrong).__name__}: {text}"
    return text if len(text) <= 400 else text[:400] + " …"
