// What Python calls a Program: one that this process compiled, or that it loaded from an artifact.
#pragma once

#include <collage/collage.h>
#include <nanobind/nanobind.h>

namespace collage::python {

// Programs, their options, and `compile` of models.
void bind_programs(nanobind::module_& core, nanobind::class_<Model>& model);

}  // namespace collage::python
