// Compiles control flow (ops/control.h): the functions that it runs as programs of their own, by
// the options of the program around it, and the call itself as a kernel that runs their plans; and
// links external modules, which are loaded.
#pragma once

#include <memory>

#include "base/progress.h"
#include "compiler/compile.h"
#include "ir/expr.h"
#include "runtime/kernel.h"

namespace collage {

// `function`: one such call (tensor_program::runs_plans). `progress` may be null.
Result<std::shared_ptr<Kernel>> compile_control(const Function& function,
                                                const ProgramOptions& options, int threads,
                                                Progress* progress);

}  // namespace collage
