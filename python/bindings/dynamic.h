// Programs of models whose shapes are not known before they run.
#pragma once

#include <nanobind/nanobind.h>

namespace collage::python {

void bind_dynamic_programs(nanobind::module_& core);

}  // namespace collage::python
