// Modules built statement by statement, and tensor programs as objects.
#pragma once

#include <nanobind/nanobind.h>

namespace collage::python {

void bind_builder(nanobind::module_& core);

}  // namespace collage::python
