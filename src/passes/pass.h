// Pass: one named transformation of a module. It returns whether it changed anything; the pipeline
// (passes/pipeline.h) verifies, dumps and times.
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

// Makes a pass that rewrites every graph function of the module on its own, except "Primitive" ones
// (kernels already). The same pointer means unchanged.
Pass function_pass(std::string name, std::function<Result<Function>(const Function&)> rewrite);

}  // namespace collage
