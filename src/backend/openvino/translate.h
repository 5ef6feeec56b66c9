// Translates our functions to OpenVINO models. Constants are shared, not copied.
#pragma once

#include <memory>
#include <openvino/openvino.hpp>
#include <vector>

#include "backend/openvino/kernels/openvino_kernel.h"
#include "base/result.h"
#include "ir/expr.h"

namespace collage::openvino {

// Checks whether a call of an operator can be translated. Tries it on placeholders, so that it
// finds all that the translation itself would.
Status can_translate(const CallNode& call);

// Returns whether 8-bit products are exact: without VNNI, OpenVINO's kernels saturate sums of two
// products.
bool has_exact_int8();

struct Translation {
  std::shared_ptr<ov::Model> model;  // null when no result is computed
  std::vector<ResultSource> results;
  std::vector<IndexCheck> checks;
  size_t constant_bytes = 0;
};

// `function` is a flat graph of operator calls (see inline_calls).
Result<Translation> translate(const Function& function);

}  // namespace collage::openvino
