// Expressions of graphs, and what their attributes are in Python.
#pragma once

#include <nanobind/nanobind.h>

namespace collage::python {

void bind_expressions(nanobind::module_& core);

}  // namespace collage::python
