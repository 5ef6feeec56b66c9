#pragma once

#include <nanobind/nanobind.h>

namespace collage::python {

void bind_devices(nanobind::module_& core);

}  // namespace collage::python
