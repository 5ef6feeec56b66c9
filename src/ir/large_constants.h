// Functions without large constants, for reports, which would otherwise keep a model's weights in
// memory.
#pragma once

#include "ir/expr.h"

namespace collage {

// Returns the function with large constants replaced by constants without values, in called
// functions too; the function itself if an operator's type depends on values.
Function without_large_constants(const Function& function);

// Does so in all functions that a compilation's report holds.
template <typename Report>
void forget_large_constants(Report& report) {
  const auto forget = [](auto& kernels) {
    for (auto& kernel : kernels) kernel.function = without_large_constants(kernel.function);
  };
  forget(report.kernels);
  for (auto& cover : report.covers) forget(cover.kernels);
  for (auto& [name, function] : report.partitioned.functions)
    function = without_large_constants(function);
}

}  // namespace collage
