// Functions that are kept to be told of, not computed: reports would keep a model's weights alive.
#pragma once

#include "ir/expr.h"

namespace collage {

// The function with large constants that have a type and no values, in functions that it calls too;
// the function itself where an operator's type depends on values.
Function without_large_constants(const Function& function);

// Of all that a compilation's report holds.
template <typename Report>
void forget_large_constants(Report& report) {
  const auto forget = [](auto& kernels) {
    for (auto& kernel : kernels) kernel.function = without_large_constants(kernel.function);
  };
  forget(report.kernels);
  for (auto& plan : report.plans) forget(plan.kernels);
  for (auto& [name, function] : report.partitioned.functions)
    function = without_large_constants(function);
}

}  // namespace collage
