// From columns to a cover: an order they can run in, and which conversions run before which kernel.
#pragma once

#include <optional>
#include <span>

#include "search/forms.h"

namespace collage::search {

// A column that is applied, with what is made beside the forms it reads.
struct Step {
  uint32_t column;
  std::vector<Detour> detours;
};

// The cover that some steps make, in their order. It costs infinity where a form cannot be made.
Cover decode(const CompactProblem& compact, std::span<const Step> steps);

// The cover that a solution of the linear program (potentials.h) is, with the cheapest conversions
// that need no detour; none where some column is used in part, or where they wait for one another.
// `order` is a dataflow order of the nodes that the kernels' order is close to.
std::optional<Cover> decode_solution(const CompactProblem& compact,
                                     const std::vector<uint32_t>& order,
                                     std::span<const double> solution);

}  // namespace collage::search
