// Simplifies terms by the ranges of index variables: blocks that are taken apart and put together
// again cancel, and bounds that always hold are removed.
//
//   (j1 * 16 + j0) / 16 = j1 and (j1 * 16 + j0) % 16 = j0 for j0:16;  j / 16 * 16 + j % 16 = j
#pragma once

#include <functional>
#include <vector>

#include "tensor_program/program.h"

namespace collage::tensor_program {

/// Axes that are not listed may have any value.
Term simplify(const Term& term, const std::vector<Axis>& axes);

/// Returns the term with every sub-term, inner ones first, replaced by the result of `rule` for it
/// over its rewritten arguments.
Term rewrite(const Term& term, const std::function<Term(const Term&)>& rule);

/// Replaces variables by terms.
struct Replacement {
  std::string variable;
  Term by;
};
Term substitute(const Term& term, const std::vector<Replacement>& replacements);

}  // namespace collage::tensor_program
