// The metadata section at the end of Relay text, a JSON object, and the constants that
// meta[relay.Constant][i] stands for. An entry of "relay.Constant" holds values, or the number of a
// tensor in the side file that "side_file" names next to the text. ParseOptions::constant supplies
// a constant without either, given the type written behind it. Each constant is made once, when it
// is first needed. The section is untrusted: names, numbers and types are checked.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/expr.h"
#include "ir/text_parser.h"

namespace collage {

class Metadata {
 public:
  explicit Metadata(const ParseOptions& options) : options_(options) {}

  Status read(std::string_view text);
  // Returns the constant of meta[relay.Constant][index], annotated with a type or not.
  Result<Expr> constant(size_t index, const std::optional<TensorType>& type);

 private:
  Result<Tensor> value(size_t index, const std::optional<TensorType>& type) const;

  const ParseOptions& options_;
  nlohmann::json entries_ = nlohmann::json::array();
  std::vector<Tensor> side_tensors_;
  std::vector<Expr> constants_;
};

}  // namespace collage
