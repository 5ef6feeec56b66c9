"""Options of a compilation, as the extension takes them. They are the command's flags (docs/command.md)."""

from __future__ import annotations

import os as _os
from typing import Callable, Optional, Sequence, Union

from . import _core

Path = Union[str, "_os.PathLike[str]"]


def make_options(
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
    shared_weights: Optional[_core.SharedWeights] = None,
    costs: Optional[Callable[[str, str, str], Optional[float]]] = None,
) -> _core.Options:
    options = _core.Options()
    given = dict(targets=words(targets), exclude=words(exclude), pin=[pin] if isinstance(pin, str) else list(pin), devices=devices,
                 memory=words(memory), threads=threads, database=database, config=config, worker=worker, frozen_costs=frozen_costs,
                 strict_accuracy=strict_accuracy, always_measure=always_measure, max_error=max_error)
    for name, value in given.items():
        setattr(options, name, value)
    options.set_effort(effort or "fast")
    if not effort:
        options.budget_seconds = budget
    if shared_weights is not None:
        options.share_weights(shared_weights)
    if costs is not None:
        options.set_costs(costs)
    return options


def words(given: Union[str, Sequence[str]]) -> list[str]:
    """A list of names; one name, or several with commas, may be given as text, and so may one target with a rule."""
    if isinstance(given, str) and " -rules=" in given:
        return [given]
    return [word.strip() for word in given.split(",") if word.strip()] if isinstance(given, str) else list(given)
