// Models over symbols.
#pragma once

#include <nanobind/nanobind.h>

namespace collage::python {

void bind_symbolic(nanobind::module_& core);

}  // namespace collage::python
