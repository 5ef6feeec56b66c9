// Constants in text: scalars as literals, the others as entries of the metadata section. Values
// round trip exactly: reals are printed with the digits needed, or as raw hexadecimal bytes if no
// decimal number has the value (NaN with a payload, 16-bit reals).
#pragma once

#include <collage/tensor.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/type.h"

namespace collage {

// Returns the literal of a scalar, or none (16-bit reals, NaN with a payload).
std::optional<std::string> scalar_literal(const Tensor& value);
// Parses a number with its suffix ("0.5f", "-1i64", "inff").
Result<Tensor> parse_scalar_literal(std::string_view text);

// Returns the numbers of a tensor, [1.0, "inf"]; nothing if some has no exact decimal form (NaN,
// 16-bit reals).
std::string constant_values(const Tensor& value);
// {"dtype": "float32", "shape": [2], "values": [1.0, 2.0]}
std::string constant_entry(const Tensor& value);
// Returns {"dtype": "int32", "shape": [512], "value": 0} for integers that are all equal, as zero
// points of weights are; else none.
std::optional<std::string> uniform_entry(const Tensor& value);
// Makes the constant of an entry that holds its values.
Result<Tensor> parse_constant_entry(const nlohmann::json& entry);
Result<TensorType> parse_constant_entry_type(const nlohmann::json& entry);

}  // namespace collage
