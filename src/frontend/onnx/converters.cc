#include "frontend/onnx/converters.h"

#include <unordered_map>
#include <unordered_set>

#include "base/check.h"

namespace collage::frontend {

namespace {

using Table = std::unordered_map<std::string, ConverterRow>;

Table make_table() {
  Table table;
  for (const ConverterRows& family :
       {activation_converters(), attention_converters(), constant_converters(), conv_converters(),
        einsum_converters(), elementwise_converters(), index_converters(), loss_converters(),
        matmul_converters(), norm_converters(), pool_converters(), recurrent_converters(),
        reduce_converters(), resize_converters(), shape_converters()})
    for (const ConverterRow& row : family) {
      const bool fresh = table.emplace(row.op, row).second;
      COLLAGE_CHECK(fresh, "operator {} is in the table twice", row.op);
    }
  return table;
}

}  // namespace

const ConverterRow* find_converter(const std::string& op) {
  static const Table* table = new Table(make_table());
  auto it = table->find(op);
  return it == table->end() ? nullptr : &it->second;
}

std::string_view reason_left_out(const std::string& op) {
  static const auto* reasons = new std::unordered_map<std::string_view, std::string_view>{
      {"If", "control flow on a computed condition"},
      {"Loop", "control flow"},
      {"Scan", "control flow"},
      {"NonMaxSuppression", "the shape of the result depends on values"},
      {"Unique", "the shape of the result depends on values"},
      {"QuantizeLinear", "quantised types"},
      {"DequantizeLinear", "quantised types"},
      {"DynamicQuantizeLinear", "quantised types"},
      {"QLinearConv", "quantised types"},
      {"QLinearMatMul", "quantised types"},
      {"ConvInteger", "quantised types"},
      {"MatMulInteger", "quantised types"},
      {"RandomNormal", "random values"},
      {"RandomNormalLike", "random values"},
      {"RandomUniform", "random values"},
      {"RandomUniformLike", "random values"},
      {"Bernoulli", "random values"},
      {"Multinomial", "random values"},
      {"StringConcat", "strings"},
      {"StringNormalizer", "strings"},
      {"StringSplit", "strings"},
      {"RegexFullMatch", "strings"},
      {"TfIdfVectorizer", "strings"},
  };
  if (op.find("Sequence") != std::string::npos) return "sequences";
  if (op.find("Optional") != std::string::npos) return "optional values";
  auto it = reasons->find(op);
  return it == reasons->end() ? std::string_view() : it->second;
}

}  // namespace collage::frontend
