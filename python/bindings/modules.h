// Models as modules: text, graphs, passes.
#pragma once

#include <collage/collage.h>
#include <nanobind/nanobind.h>

namespace collage::python {

void bind_modules(nanobind::module_& core, nanobind::class_<Model>& model);

}  // namespace collage::python
