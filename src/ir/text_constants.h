// Constants in text: scalars as literals, the others as entries of the metadata section. Values
// round trip exactly: reals are printed with the digits needed, or as raw hexadecimal bytes where a
// decimal number cannot say it (NaN with a payload, 16-bit reals).
#pragma once

#include <collage/tensor.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/type.h"

namespace collage {

// The literal of a scalar, or nothing when it has none (16-bit reals, NaN with a payload).
std::optional<std::string> scalar_literal(const Tensor& value);
// The value of a number with its suffix ("0.5f", "-1i64", "inff").
Result<Tensor> parse_scalar_literal(std::string_view text);

// {"dtype": "float32", "shape": [2], "values": [1.0, 2.0]}
std::string constant_entry(const Tensor& value);
// {"dtype": "int32", "shape": [512], "value": 0}: of integers that are all equal, as zero points of
// weights are; else nothing.
std::optional<std::string> uniform_entry(const Tensor& value);
// The constant of an entry that holds its values.
Result<Tensor> parse_constant_entry(const nlohmann::json& entry);
Result<TensorType> parse_constant_entry_type(const nlohmann::json& entry);

}  // namespace collage
