"""ATen operators as Collage's: a table of converters (docs/python.md). Importing this needs PyTorch."""

from . import elementwise, indexing, layers, reductions, shapes
from .table import TABLE, Empty, Lowering, Unsupported, concrete, constant, dtype_of, fits, is_empty, shape_of, try_convert

__all__ = ["TABLE", "Empty", "Lowering", "Unsupported", "concrete", "constant", "dtype_of", "elementwise", "fits", "indexing", "is_empty",
           "layers", "reductions", "shape_of", "shapes", "try_convert"]
