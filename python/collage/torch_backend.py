"""Collage as a backend of torch.compile: torch.compile(model, backend="collage").

TorchDynamo's graph goes through AOTAutograd, whose wrappers take care of writes to inputs, aliases, strides and effects, and comes here as
a functional graph of ATen operators. What the table (collage.aten) converts is Collage's, in parts as large as the graph allows; the rest
(random operators, complex numbers, results whose shape depends on values) stays in PyTorch, between the parts. A part is compiled when it is
first called, once for each set of shapes. Parameters and buffers are constants of it; one that is changed or replaced is noticed, and its
part compiled anew. A graph that wants gradients runs as PyTorch runs it.

The logger "collage.torch" says what stays in PyTorch, and why.

Options: torch.compile(model, backend="collage", options={"effort": "fast"}) takes what collage.Model.compile does.
"""

from __future__ import annotations

import collections
import logging
import operator
import threading
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence

import torch
from torch.fx import GraphModule, Node

import collage

from . import _core, aten

log = logging.getLogger("collage.torch")

_MOST_PROGRAMS = 64  # of one part: the least recently used goes
_MOST_CHANGES = 2  # a weight that changes more often is an input
_QUICK = {"targets": "native", "effort": "fast", "patience": 0}
_SYMBOLIC = {"targets": "native -symbolic=only"}  # kernels that serve many shapes, where there are such
_CALLS_UNTIL_COMPILED = 3
_LITTLE_WORK = 1e7  # operations and bytes: a model of less is done in some 0.1 ms, and measuring its kernels costs more than it can win


def compile_fx(graph: GraphModule, example_inputs: Sequence[Any], *, options: Optional[dict[str, Any]] = None) -> Callable[..., Any]:
    """What torch.compile calls with each graph."""
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    if torch.is_grad_enabled() and any(isinstance(value, torch.Tensor) and value.requires_grad for value in example_inputs):
        _tell(graph, "gradients are wanted: call it within torch.no_grad()")
        return graph.forward
    written: set[int] = set()

    def compile_inference(module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        infos = _input_infos()
        changed = {i for i, info in enumerate(infos.input_info) if info.mutates_data}
        own = len(infos.input_info) - len(example_inputs)  # parameters that the graph itself holds are the first
        written.update(i - own for i in changed if i >= own)
        return make_boxed_func(_compiled(module, set(infos.static_input_indices) - changed, options or {}))

    compiler = aot_autograd(fw_compiler=lambda module, inputs: make_boxed_func(module.forward), inference_compiler=compile_inference)
    try:
        run = compiler(graph, example_inputs)
    except torch._dynamo.exc.TorchDynamoException:  # TorchDynamo's own ways to go on
        raise
    except RuntimeError as wrong:  # what AOTAutograd has no form for
        _tell(graph, _one_line(wrong))
        return graph.forward
    return _unless_overlapping(run, graph, sorted(written)) if written else run


def from_exported(program: torch.export.ExportedProgram, shapes: Mapping[str, Sequence[int]]) -> collage.Model:
    """`collage.from_exported`."""
    table = torch.export.default_decompositions()
    for overload in aten.TABLE:
        table.pop(overload, None)
    program = program.run_decompositions(table)
    signature = program.graph_signature
    if signature.buffers_to_mutate or signature.user_inputs_to_mutate:
        raise _unsupported("the program writes to its inputs or buffers")
    targets = {spec.arg.name: spec.target for spec in signature.input_specs if spec.kind is not torch.export.graph_signature.InputKind.USER_INPUT}
    state = {**program.state_dict, **program.constants}
    nodes = _placeholders(program.graph_module)
    extents: dict[Any, int] = {}  # of symbols, as the shapes say
    for node in nodes:
        for extent, given in zip(node.meta["val"].shape if node.name in shapes else (), shapes.get(node.name, ())):
            if isinstance(extent, torch.SymInt):
                extents[extent.node.expr] = int(given)
    unknown = shapes.keys() - {node.name for node in nodes}
    if unknown:
        raise collage.Error(collage.ErrorCode.USAGE, f"shapes: the program has no input {', '.join(sorted(unknown))}")
    inputs = [state[targets[node.name]] if node.name in targets else _like(node.meta["val"], extents) for node in nodes]
    try:
        constants = {i: aten.constant(inputs[i]) for i, node in enumerate(nodes) if node.name in targets}
        function, _, _ = _function(program.graph_module, inputs, constants, laid_out=False)
    except aten.Unsupported as wrong:
        raise _unsupported(str(wrong)) from wrong
    return collage.passes.simplify()(collage.Model.of(function))


def _like(meta: Any, extents: Mapping[Any, int]) -> Any:
    """A tensor of that type without memory; symbols have these values, or those that they were exported with."""
    if not isinstance(meta, torch.Tensor):
        return meta
    shape = [extent if isinstance(extent, int) else int(extent.node.expr.subs({**extent.node.shape_env.backed_var_to_val, **extents}))
             for extent in meta.shape]
    return torch.empty(shape, dtype=meta.dtype, device="meta")


def _unsupported(why: str) -> collage.Error:
    return collage.Error(collage.ErrorCode.UNSUPPORTED, why)


def _input_infos() -> Any:
    """What AOTAutograd says of the inputs of the graph that it has compiled: which are parameters and buffers, and which are written."""
    context = torch._guards.TracingContext.try_get()
    assert context is not None and context.fw_metadata is not None, "AOTAutograd says nothing of its inputs"
    return context.fw_metadata


def _unless_overlapping(run: Callable[..., Any], graph: GraphModule, written: Sequence[int]) -> Callable[..., Any]:
    """In PyTorch where an input that is written shares memory with another one: AOTAutograd knows only of what it was traced with."""

    def place(value: Any) -> tuple[int, int]:
        if not isinstance(value, torch.Tensor) or value.numel() == 0:
            return (0, 0)
        begin = value.data_ptr()
        return begin, begin + (1 + sum((extent - 1) * stride for extent, stride in zip(value.shape, value.stride()))) * value.itemsize

    def call(*inputs: Any) -> Any:
        places = [place(value) for value in inputs]
        for i in written:
            begin, end = places[i]
            if any(first < end and begin < last for j, (first, last) in enumerate(places) if j != i):
                return graph(*inputs)
        return run(*inputs)

    return call


def _compiled(module: GraphModule, frozen: set[int], options: dict[str, Any]) -> Callable[..., Any]:
    """The graph with its parts as Collage's."""
    with torch._subclasses.fake_tensor.unset_fake_temporarily():
        supported = _supported(module.graph) - _shared_views(module)
    whole = len(supported) == sum(node.op not in ("placeholder", "output") for node in module.graph.nodes)
    if whole and _are_results(module) and _computes(supported):
        log.info("all %d operators in Collage", len(supported))
        return _Part(module, {node for i, node in enumerate(_placeholders(module)) if i in frozen}, options)
    split = _split(module, supported)
    weights = {node for i, node in enumerate(_placeholders(split)) if i in frozen}
    parts = [node for node in split.graph.nodes if node.op == "call_module" and str(node.target).startswith(_PREFIX)]
    if not parts:
        _tell(module, "nothing in it that Collage computes")
        return module.forward
    for node in parts:
        part = getattr(split, node.target)
        held = {inner for inner, outer in zip(_placeholders(part), node.args) if outer in weights}
        delattr(split, node.target)
        node.op, node.target = "call_function", _Part(part, held, options)
        node.target.__name__ = node.name
    split.recompile()
    left = collections.Counter(str(node.target) for node in split.graph.nodes
                               if node.op == "call_function" and not isinstance(node.target, _Part) and node.target not in _FREE)
    if left:
        log.info("%d parts in Collage: in PyTorch %s", len(parts), ", ".join(f"{name} x{count}" for name, count in sorted(left.items())))
    else:
        log.info("all but views in Collage")
    return split.forward


def _placeholders(module: GraphModule) -> list[Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def _results(module: GraphModule) -> list[Any]:
    (results,) = next(node for node in reversed(module.graph.nodes) if node.op == "output").args
    return list(results) if isinstance(results, (tuple, list)) else [results]


# Which nodes are Collage's.

_PREFIX = "collage_"
_VIEWS = ("view", "_unsafe_view", "permute", "transpose", "t", "unsqueeze", "squeeze", "expand", "slice", "select", "split", "split_with_sizes",
          "unbind", "alias", "detach", "clone", "full", "arange", "zeros", "ones", "scalar_tensor", "diagonal", "_to_copy", "lift_fresh_copy")
_FREE = {operator.getitem, *(overload for overload in aten.TABLE if overload._schema.name.split("::")[1] in _VIEWS)}


def _computes(nodes: Iterable[Node]) -> bool:
    """Whether there is anything to gain: PyTorch's views cost nothing."""
    return any(node.op == "call_function" and node.target not in _FREE for node in nodes)


def _supported(graph: torch.fx.Graph) -> set[Node]:
    """The nodes that Collage computes, each tried on the types of what it reads."""
    lowering, found = aten.Lowering(), set()
    for node in graph.nodes:
        meta = node.meta.get("val")
        if node.op == "call_function" and not isinstance(meta, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)):
            value = aten.try_convert(lowering, node) if all(i in lowering.values for i in node.all_input_nodes) else None
            if value is not None:
                lowering.values[node] = value
                found.add(node)
                continue
        given = _parameters(node.name, meta)
        if given is not None:
            lowering.values[node] = given
    return found


def _parameters(name: str, meta: Any) -> Any:
    """Stands for a node that is not converted."""
    try:
        if isinstance(meta, (torch.SymInt, int)):
            return aten.concrete(meta)
        if isinstance(meta, (tuple, list)):
            return tuple(_parameters(name, value) for value in meta)
        if not aten.fits(meta):
            return None
        return aten.Empty() if aten.is_empty(meta) else collage.parameter(name, aten.shape_of(meta), aten.dtype_of(meta))
    except aten.Unsupported:
        return None


def _are_results(module: GraphModule) -> bool:
    """Whether every result is computed here, once, and laid out densely: a part may give it."""
    results = _results(module)
    return len(set(results)) == len(results) and all(
        isinstance(node, Node) and node.op == "call_function" and _order(node.meta["val"]) is not None for node in results)


def _shared_views(module: GraphModule) -> set[Node]:
    """The views by which results share memory with others: PyTorch makes these, of what a part gives."""
    chains = collections.defaultdict(list)  # by what is viewed in the end
    for result in dict.fromkeys(node for node in _results(module) if isinstance(node, Node)):
        chain, node = [], result
        while node.op == "call_function" and (node.target is operator.getitem or getattr(node.target, "is_view", False)):
            chain.append(node)
            node = node.args[0]
        chains[node].append(chain)
    return {node for some in chains.values() if len(some) > 1 for chain in some for node in chain if node.target is not operator.getitem}


def _split(module: GraphModule, supported: set[Node]) -> GraphModule:
    """With the supported nodes in modules of their own, as few as the graph allows."""
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import OperatorSupportBase

    class Support(OperatorSupportBase):
        def is_node_supported(self, submodules: Any, node: Node) -> bool:
            return node in supported

    while True:
        partitioner = CapabilityBasedPartitioner(module, Support(), allows_single_node_partition=True)
        partitions = [partition for partition in partitioner.propose_partitions() if _computes(partition.nodes)]
        # What a part gives is a new tensor: a view of something keeps its strides only where it is dense.
        sparse = {node for partition in partitions for node in partition.nodes
                  if isinstance(node.meta["val"], torch.Tensor) and _order(node.meta["val"]) is None
                  and any(user not in partition.nodes for user in node.users)}
        if not sparse:
            break
        pieces = {node.args[0] for node in sparse if node.target is operator.getitem}
        supported -= sparse | pieces | {user for node in pieces for user in node.users if user.target is operator.getitem}
    random = [node.name for node in module.graph.nodes if _is_random(node) and node not in supported]
    split = partitioner.fuse_partitions(partitions, prefix=_PREFIX)
    if random != [node.name for node in split.graph.nodes if node.name in set(random)]:
        raise RuntimeError("parts of it would change the order of random operators")
    return split


def _is_random(node: Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags


def _order(meta: torch.Tensor) -> Optional[list[int]]:
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


def _tell(module: GraphModule, why: str) -> None:
    count = sum(node.op.startswith("call_") for node in module.graph.nodes)
    log.warning("a graph of %d operators runs in PyTorch: %s", count, why)


# A part.


class _Part:
    """A graph of supported nodes alone; its programs are made when they are first needed, with the tensors of that call.

    Where shapes vary the first ones are compiled as the options ask. Others run in PyTorch until they have come several times, and are then
    compiled without measuring, unless their costs are known; all programs share one set of weights.
    """

    def __init__(self, module: GraphModule, weights: set[Node], options: dict[str, Any]) -> None:
        self._module = module
        self._options = options
        self._inputs = _placeholders(module)
        self._single = not isinstance(next(node for node in reversed(module.graph.nodes) if node.op == "output").args[0], (tuple, list))
        self._frozen = {i for i, node in enumerate(self._inputs) if node in weights and _order(node.meta["val"]) is not None}
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
                program = _Program(self._module, inputs, self._weights, self._options, first)
            except (aten.Unsupported, collage.Error) as wrong:
                _tell(self._module, _one_line(wrong))
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

    def __init__(self, module: GraphModule, inputs: Sequence[Any], weights: _Weights, options: dict[str, Any], first: bool) -> None:
        elsewhere = {str(value.device) for value in inputs if isinstance(value, torch.Tensor) and value.device.type != "cpu"}
        if elsewhere:
            raise aten.Unsupported(f"tensors on {', '.join(sorted(elsewhere))}")
        function, self._given, self._views = _function(module, inputs, weights.constants, laid_out=True)
        if not self._given:
            raise aten.Unsupported("it reads no input")
        model = collage.passes.simplify()(collage.Model.of(function))
        self.program = _program_of(model, {"shared_weights": weights.shared, **options}, first)
        self._run = self.program._core.run

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


def _program_of(model: collage.Model, options: dict[str, Any], first: bool) -> collage.Program:
    """As the options ask; a small model, and further shapes whose costs are not known, without measuring."""
    asked = options.keys() - {"shared_weights"}
    if first and (asked or sum(model.work()) >= _LITTLE_WORK):
        return model.compile(**options)
    if not first:
        try:
            return model.compile(**{**options, "frozen_costs": True})
        except collage.Error:  # costs that nobody measured
            pass
    return model.compile(**{**_QUICK, **options, **({} if first else _SYMBOLIC)})


def _function(module: GraphModule, inputs: Sequence[Any], constants: Mapping[int, Any], laid_out: bool) -> tuple[Any, list[Any], list[Any]]:
    """The graph as a function of Collage; which inputs it takes, and in which order of dimensions; which results are views, and which.

    `constants` stand for some of the inputs. `laid_out`: inputs and results are in the order of dimensions in which they lie in memory; else all are contiguous.
    """
    lowering, parameters, given, results = aten.Lowering(), [], [], []
    for i, (node, value) in enumerate(zip(_placeholders(module), inputs)):
        if not isinstance(value, torch.Tensor):
            lowering.values[node] = value
        elif i in constants:
            lowering.values[node] = constants[i]
        elif value.numel() == 0:
            lowering.values[node] = aten.Empty()
        else:
            order = _order(value)
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
    for i, node in enumerate(_results(module)):
        result, meta = lowering.values[node], node.meta["val"]
        order, shape = _order(meta) if laid_out else list(range(len(result.shape))), list(result.shape)
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


def _one_line(wrong: BaseException) -> str:
    text = " ".join(str(wrong).split())
    return text if len(text) <= 400 else text[:400] + " …"
