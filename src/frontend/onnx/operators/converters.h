// The tables of ONNX operators, one for each known domain: how many inputs a node may have, and the
// function that turns it into calls. One file a family adds its rows; an operator that is not in
// the table of its domain is unsupported.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "frontend/onnx/node_context.h"

namespace collage::frontend {

// One expression an output; fewer than the node has if trailing ones are not supported, null for
// one that is not.
using Outputs = std::vector<Expr>;
using Converter = std::function<Result<Outputs>(NodeContext&)>;

struct ConverterRow {
  std::string_view op;
  int min_inputs;
  int max_inputs;  // -1: any number
  Converter convert;
};

// Returns null if there is none. `domain` is as the node names it: "" or "ai.onnx", another domain
// of ONNX, "com.microsoft", whose operators ONNX Runtime's optimisers leave in saved models, or a
// domain with operators that the user defined.
const ConverterRow* find_converter(const std::string& domain, const std::string& op);
// Returns the converter of a user's operator; null if there is none.
const ConverterRow* find_defined_converter(const std::string& domain, const std::string& op);
// Returns why an operator of these domains is left out, for the message; empty if it is unknown.
std::string_view reason_left_out(const std::string& domain, const std::string& op);

// Wraps a converter of one output.
inline Converter single(std::function<Result<Expr>(NodeContext&)> convert) {
  return [convert = std::move(convert)](NodeContext& node) -> Result<Outputs> {
    Expr result = TRY(convert(node));
    return Outputs{std::move(result)};
  };
}

using ConverterRows = std::vector<ConverterRow>;
ConverterRows activation_converters();
ConverterRows attention_converters();
ConverterRows cast_converters();
ConverterRows constant_converters();
ConverterRows conv_converters();
ConverterRows deform_converters();
ConverterRows determinant_converters();
ConverterRows einsum_converters();
ConverterRows elementwise_converters();
ConverterRows grid_converters();
ConverterRows index_converters();
ConverterRows linear_attention_converters();
ConverterRows loss_converters();
ConverterRows matmul_converters();
ConverterRows ngram_converters();
ConverterRows norm_converters();
ConverterRows pool_converters();
ConverterRows quantised_converters();
ConverterRows random_converters();
ConverterRows recurrent_converters();
ConverterRows reduce_converters();
ConverterRows resize_converters();
ConverterRows roi_converters();
ConverterRows shape_converters();
ConverterRows signal_converters();
ConverterRows unpool_converters();

// Rows of the domains ai.onnx.ml, ai.onnx.preview and ai.onnx.preview.training.
ConverterRows feature_converters();
ConverterRows preview_converters();
ConverterRows training_converters();

// Rows of the domain com.microsoft.
ConverterRows microsoft_activation_converters();
ConverterRows microsoft_attention_converters();
ConverterRows microsoft_fused_converters();
ConverterRows microsoft_grouped_attention_converters();
ConverterRows microsoft_norm_converters();
ConverterRows microsoft_qlinear_converters();
ConverterRows microsoft_quantised_converters();
ConverterRows microsoft_rotary_converters();

}  // namespace collage::frontend
