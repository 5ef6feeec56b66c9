// Pass: one named transformation of a module. It reports whether it changed anything; verifying,
// dumping and timing are the pipeline's work (passes/pipeline.h).
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "ir/module.h"

namespace collage {

struct Pass {
  std::string name;
  std::function<Result<bool>(Module&)> run;  // true: the module changed
};

// A pass that rewrites every graph function of the module on its own, but for "Primitive" ones
// (kernels that somebody decided on already). The same pointer means unchanged.
Pass function_pass(std::string name, std::function<Result<Function>(const Function&)> rewrite);

}  // namespace collage
