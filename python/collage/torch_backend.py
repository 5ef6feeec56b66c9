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
import copy
import logging
import operator
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence

import torch
from torch.fx import GraphModule, Node

import collage

from . import aten
from .torch_part import Part, function_of, one_line, order_of, placeholders, results_of, tell

log = logging.getLogger("collage.torch")



def compile_fx(graph: GraphModule, example_inputs: Sequence[Any], *, options: Optional[dict[str, Any]] = None) -> Callable[..., Any]:
    """What torch.compile calls with each graph."""
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    if torch.is_grad_enabled() and any(isinstance(value, torch.Tensor) and value.requires_grad for value in example_inputs):
        tell(graph, "gradients are wanted: call it within torch.no_grad()")
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
        tell(graph, one_line(wrong))
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
    nodes = placeholders(program.graph_module)
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
        function, _, _ = function_of(program.graph_module, inputs, constants, laid_out=False)
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


def _compiled(module: GraphModule, frozen: set[int], options: dict[str, Any], labels: bool = True) -> Callable[..., Any]:
    """The graph with its parts as Collage's. `labels`: operators that Collage lacks are calls of PyTorch inside a part where that joins parts."""
    with torch._subclasses.fake_tensor.unset_fake_temporarily():
        shared = _shared_views(module)
        supported = _supported(module.graph) - shared
        wider = _supported(module.graph, labels=True) - shared if labels and len(_partitions(module, supported)[1]) > 1 else supported
        labels = wider > supported and len(_partitions(module, wider)[1]) < len(_partitions(module, supported)[1])
    if labels:
        log.info("called by labels: %s", _counted(wider - supported))
        supported = wider

    def part_of(part: GraphModule, weights: set[Node]) -> Part:
        held = {i for i, node in enumerate(placeholders(part)) if node in weights}
        return Part(part, weights, options, (lambda: _compiled(copy.deepcopy(part), held, options, labels=False)) if labels else None)

    whole = len(supported) == sum(node.op not in ("placeholder", "output") for node in module.graph.nodes)
    if whole and _are_results(module) and _computes(supported):
        log.info("all %d operators in Collage", len(supported))
        return part_of(module, {node for i, node in enumerate(placeholders(module)) if i in frozen})
    split = _split(module, supported)
    weights = {node for i, node in enumerate(placeholders(split)) if i in frozen}
    parts = [node for node in split.graph.nodes if node.op == "call_module" and str(node.target).startswith(_PREFIX)]
    if not parts:
        tell(module, "nothing in it that Collage computes")
        return module.forward
    for node in parts:
        part = getattr(split, node.target)
        held = {inner for inner, outer in zip(placeholders(part), node.args) if outer in weights}
        delattr(split, node.target)
        node.op, node.target = "call_function", part_of(part, held)
        node.target.__name__ = node.name
    split.recompile()
    left = _counted(node for node in split.graph.nodes
                    if node.op == "call_function" and not isinstance(node.target, Part) and node.target not in _FREE)
    if left:
        log.info("%d parts in Collage: in PyTorch %s", len(parts), left)
    else:
        log.info("all but views in Collage")
    return split.forward


def _counted(nodes: Iterable[Node]) -> str:
    """What they call, and how often."""
    return ", ".join(f"{name} x{count}" for name, count in sorted(collections.Counter(str(node.target) for node in nodes).items()))


# Which nodes are Collage's.

_PREFIX = "collage_"
_VIEWS = ("view", "_unsafe_view", "permute", "transpose", "t", "unsqueeze", "squeeze", "expand", "slice", "select", "split", "split_with_sizes",
          "unbind", "alias", "detach", "clone", "full", "arange", "zeros", "ones", "scalar_tensor", "diagonal", "_to_copy", "lift_fresh_copy")
_FREE = {operator.getitem, *(overload for overload in aten.TABLE if overload._schema.name.split("::")[1] in _VIEWS)}


def _computes(nodes: Iterable[Node]) -> bool:
    """Whether there is anything to gain: PyTorch's views cost nothing."""
    return any(node.op == "call_function" and node.target not in _FREE for node in nodes)


def _supported(graph: torch.fx.Graph, labels: bool = False) -> set[Node]:
    """The nodes that Collage computes, each tried on the types of what it reads."""
    lowering, found = aten.Lowering(labels), set()
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
    results = results_of(module)
    return len(set(results)) == len(results) and all(
        isinstance(node, Node) and node.op == "call_function" and order_of(node.meta["val"]) is not None for node in results)


def _shared_views(module: GraphModule) -> set[Node]:
    """The views by which results share memory with others: PyTorch makes these, of what a part gives."""
    chains = collections.defaultdict(list)  # by what is viewed in the end
    for result in dict.fromkeys(node for node in results_of(module) if isinstance(node, Node)):
        chain, node = [], result
        while node.op == "call_function" and (node.target is operator.getitem or getattr(node.target, "is_view", False)):
            chain.append(node)
            node = node.args[0]
        chains[node].append(chain)
    return {node for some in chains.values() if len(some) > 1 for chain in some for node in chain if node.target is not operator.getitem}


def _partitions(module: GraphModule, supported: set[Node]) -> tuple[Any, list[Any]]:
    """The supported nodes in as few parts as the graph allows, and what makes modules of these."""
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import OperatorSupportBase

    class Support(OperatorSupportBase):
        def is_node_supported(self, submodules: Any, node: Node) -> bool:
            return node in supported

    partitioner = CapabilityBasedPartitioner(module, Support(), allows_single_node_partition=True)
    return partitioner, [partition for partition in partitioner.propose_partitions() if _computes(partition.nodes)]


def _split(module: GraphModule, supported: set[Node]) -> GraphModule:
    """With the supported nodes in modules of their own."""
    while True:
        partitioner, partitions = _partitions(module, supported)
        # What a part gives is a new tensor: a view of something keeps its strides only where it is dense.
        sparse = {node for partition in partitions for node in partition.nodes
                  if isinstance(node.meta["val"], torch.Tensor) and order_of(node.meta["val"]) is None
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
