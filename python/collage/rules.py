"""Rules: which kernels a target may have (docs/partitioning.md), as objects that are their own text.

    from collage import rules
    wide = rules.op("nn.conv2d", where="channels % 8 == 0")
    mine = rules.combine(rules.union(rules.composite("my.conv", wide), rules.kinds("anchor")), max_depth=4)
    program = model.compile(targets=["onednn", rules.target("native", mine)])

`combine`, `horizontal`, `max_coalesce`, `only_valid`, `own`, `union` and `vertical` take rules and the options that they have in
the text. `register_property` gives predicates a property of your own. Wherever a rule is taken, its text will do, and so will a pattern (docs/patterns.md), whose matches it then gives.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence, Union

from . import _core

_kept: list[Any] = []  # what the extension refers to, for as long as there is an interpreter


class Rule(str):
    """A rule's text as it prints. Malformed text raises `collage.Error`, which names the place."""

    def __new__(cls, text: str) -> Rule:
        return super().__new__(cls, _core.rule_text(text))


def _maker(word: str) -> Callable[..., Rule]:
    def make(*rules: str, **options: Union[int, str, Sequence[str]]) -> Rule:
        given = [f"{name}: {value if isinstance(value, (int, str)) else '[' + ', '.join(value) + ']'}" for name, value in options.items()]
        return Rule(f"{word}({', '.join([*rules, *given])})")

    return make


combine, horizontal, max_coalesce, only_valid, own, union, vertical = map(
    _maker, ("combine", "horizontal", "max_coalesce", "only_valid", "own", "union", "vertical"))


def op(*names: str, where: str = "") -> Rule:
    """Every call of one of these operators."""
    return Rule(f"is_op({', '.join(map(repr, names))})" + (f".where({where})" if where else ""))


def kinds(most: str, where: str = "") -> Rule:
    """Every call of an operator of at most that fusion kind."""
    return Rule(f"is_op_up_to({most!r})" + (f".where({where})" if where else ""))


def composite(label: str, rule: str) -> Rule:
    """What a rule gives, as one operator with that label."""
    return Rule(f"composite({label!r}, {rule})")


def target(name: str, rule: str) -> str:
    """A target with that rule, one of `targets` or the target of `partition_for`."""
    return f"{name} -rules={Rule(rule)}"


def register_property(name: str, of: Callable[[_core.Expression], Any]) -> None:
    """A property that predicates (`where`) of rules and patterns may then name, for every target, in this process.

        rules.register_property("is_narrow", lambda x: x.op == "nn.conv2d" and x.arguments[1].shape[0] < 16)
        rules.op("nn.conv2d", where="not is_narrow")

    `of` gets an expression of a graph, perhaps on another thread, and gives a truth, a number, a text, a list, or None for unknown, which
    is also what one that raises gives. A name has to mean the same in every process: what was chosen is remembered by the text.
    """
    _core.register_property(name, of)
    _kept.append(of)
