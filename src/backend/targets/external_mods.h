// External modules (ir/module.h) are artifacts of one plan, which is loaded and never compiled
// again.
#pragma once

#include <memory>

#include "runtime/plan.h"
#include "tensor_program/external_call.h"

namespace collage {

// Loads what a call calls, for that many threads. kBadModel: it is damaged, or takes or gives other
// tensors than the call; kUnavailable: it was made for another processor, version or library than
// are here. The error names the symbol.
Result<std::shared_ptr<const Plan>> load_external_mod(const tensor_program::ExternalModCall& call,
                                                      int threads);

// Checks that all that the function calls loads: a compilation would only leave out covers.
Status check_external_mods(const Function& function, int threads);

// Lets the interpreter run external modules.
void register_external_mods();

}  // namespace collage
