// From our functions to OpenVINO models. Constants are shared, not copied.
#pragma once

#include <memory>
#include <openvino/openvino.hpp>
#include <vector>

#include "base/result.h"
#include "ir/expr.h"

namespace collage::openvino {

// Whether a call of an operator can be translated, or why not. Tries it on placeholders, so it
// knows all that the translation itself finds out.
Status can_translate(const CallNode& call);

// Where a result leaf comes from. OpenVINO computes most; what is just a parameter, a constant or
// another result is copied by the kernel.
struct ResultSource {
  enum class Kind { kComputed, kParameter, kConstant, kResult };
  Kind kind = Kind::kComputed;
  size_t index = 0;  // of the model's output, the parameter or the other result leaf
  std::shared_ptr<ov::Node> constant = nullptr;
};

// A parameter that is read as indices: entry i must be in [-extent, extent) for the extent number
// i modulo their count.
struct IndexCheck {
  size_t parameter;
  Ints extents;
};

struct Translation {
  std::shared_ptr<ov::Model> model;  // null when no result is computed
  std::vector<ResultSource> results;
  std::vector<IndexCheck> checks;
  size_t constant_bytes = 0;
};

// `function` is a flat graph of operator calls (see inline_calls).
Result<Translation> translate(const Function& function);

}  // namespace collage::openvino
