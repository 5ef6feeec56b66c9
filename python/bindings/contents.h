#pragma once

#include <nanobind/nanobind.h>

namespace collage::python {

void bind_contents(nanobind::module_& core);

}  // namespace collage::python
