// Functions in Python as external functions (collage/functions.h).
#pragma once

#include <nanobind/nanobind.h>

namespace collage::python {

// Adds _core.register_function, register_functions, register_node and register_intrinsic.
void bind_functions(nanobind::module_& core);

}  // namespace collage::python
