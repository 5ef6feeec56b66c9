"""ATen operators as Collage's: a table of converters (docs/python.md). Importing this needs PyTorch."""

from . import elementwise, indexing, layers, reductions, shapes
from .table import TABLE, Lowering, Unsupported, concrete, constant, dtype_of, fits, shape_of, try_convert

__all__ = ["TABLE", "Lowering", "Unsupported", "concrete", "constant", "dtype_of", "elementwise", "fits", "indexing", "layers", "reductions",
           "shape_of", "shapes", "try_convert"]
