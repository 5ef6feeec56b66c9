// Expressions of graphs, and what their attributes are in Python.
#pragma once

#include <collage/expression.h>
#include <nanobind/nanobind.h>

namespace collage::python {

void bind_expressions(nanobind::module_& core);

// Attributes by name. Raises TypeError for a value of another kind.
Expression::Attributes from_python(const nanobind::dict& given);
nanobind::dict to_python(const Expression::Attributes& attributes);

}  // namespace collage::python
