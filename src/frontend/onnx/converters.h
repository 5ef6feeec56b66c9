// The table of ONNX operators: how many inputs a node may have, since which operator set it exists
// for us, and the function that turns it into calls. One file a family adds its rows; an operator
// that is not in the table is unsupported.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "frontend/onnx/node_context.h"

namespace collage::frontend {

// One expression an output; fewer than the node has when trailing ones are not supported.
using Outputs = std::vector<Expr>;
using Converter = std::function<Result<Outputs>(NodeContext&)>;

struct ConverterRow {
  std::string_view op;
  int min_inputs;
  int max_inputs;  // -1: any number
  Converter convert;
};

// Null when there is none.
const ConverterRow* find_converter(const std::string& op);
// Why an operator of the standard domain is left out, for the message; empty when it is unknown.
std::string_view reason_left_out(const std::string& op);

// For the many operators with one output.
inline Converter single(std::function<Result<Expr>(NodeContext&)> convert) {
  return [convert = std::move(convert)](NodeContext& node) -> Result<Outputs> {
    Expr result = TRY(convert(node));
    return Outputs{std::move(result)};
  };
}

using ConverterRows = std::vector<ConverterRow>;
ConverterRows activation_converters();
ConverterRows attention_converters();
ConverterRows constant_converters();
ConverterRows conv_converters();
ConverterRows einsum_converters();
ConverterRows elementwise_converters();
ConverterRows index_converters();
ConverterRows loss_converters();
ConverterRows matmul_converters();
ConverterRows norm_converters();
ConverterRows pool_converters();
ConverterRows recurrent_converters();
ConverterRows reduce_converters();
ConverterRows resize_converters();
ConverterRows shape_converters();

}  // namespace collage::frontend
