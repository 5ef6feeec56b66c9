"""What went wrong, as an exception with a code."""

from __future__ import annotations

import enum


class ErrorCode(enum.IntEnum):
    """What kind of failure; the value is also the exit status of the `collage` command."""

    INTERNAL = 1  #: a bug of Collage, or a resource (disk, memory) that failed
    USAGE = 2  #: a wrong argument
    BAD_MODEL = 3  #: a malformed model, or arrays whose shape or dtype do not fit it
    UNSUPPORTED = 4  #: a well-formed model that uses something not implemented
    UNAVAILABLE = 5  #: a target that this machine or build lacks
    VERIFICATION = 6  #: results differ from the reference beyond tolerance
    REGRESSION = 7  #: a comparison found a regression beyond noise
    FROZEN_COSTS = 8  #: costs are frozen and a measurement is missing


class Error(Exception):
    """Everything that a model, an argument or the machine can cause."""

    code: ErrorCode

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = ErrorCode(code)

    def __reduce__(self):
        return (type(self), (int(self.code), *self.args))
