// What compiled code is called with: inputs, outputs and constants; and how they are saved.
#pragma once

#include <HalideRuntime.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/result.h"
#include "runtime/saved_kernel.h"

namespace collage::native {

/// An argument of the code: an input, an output or a constant, dense.
struct KernelArgument {
  std::vector<int64_t> extents;  ///< innermost first
  halide_type_t type;
  int input = -1, output = -1;
  SharedBytes constant;
};

/// The constants are added to `constants` in order.
nlohmann::json arguments_to_json(const std::vector<KernelArgument>& arguments,
                                 std::vector<SharedBytes>& constants);
/// Fails where they do not fit the buffers or the constants of `saved`.
Result<std::vector<KernelArgument>> arguments_from_json(const nlohmann::json& list,
                                                        const SavedKernel& saved);

}  // namespace collage::native
