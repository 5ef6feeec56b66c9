// How everybody compiles a kernel of a backend.
#pragma once

#include <memory>

#include "backend/backend.h"

namespace collage {

// Whether a variant's encodings fit a function of these inputs and outputs: their number, and
// layouts of the right rank.
Status check_fit(const Variant& variant, const std::vector<TensorType>& inputs,
                 const std::vector<TensorType>& outputs);

// After the backend's own updates of constants.
Result<std::unique_ptr<Kernel>> compile_kernel(const Backend& backend, const Function& function,
                                               const Variant& variant, const Target& target,
                                               const CompileOptions& options);

}  // namespace collage
