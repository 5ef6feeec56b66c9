#include "frontend/onnx/converters.h"

#include <initializer_list>
#include <unordered_map>

#include "base/check.h"
#include "frontend/onnx/model_file.h"

namespace collage::frontend {

namespace {

using Table = std::unordered_map<std::string, ConverterRow>;

void add_row(Table& table, const ConverterRow& row) {
  const bool fresh = table.emplace(row.op, row).second;
  COLLAGE_CHECK(fresh, "operator {} is in the table twice", row.op);
}

Table make_table(std::initializer_list<ConverterRows> families) {
  Table table;
  for (const ConverterRows& family : families)
    for (const ConverterRow& row : family) add_row(table, row);
  return table;
}

const Table& standard_table() {
  static const Table* table = new Table(make_table(
      {activation_converters(), attention_converters(), constant_converters(), conv_converters(),
       determinant_converters(), einsum_converters(), elementwise_converters(), grid_converters(),
       index_converters(), loss_converters(), matmul_converters(), norm_converters(),
       pool_converters(), recurrent_converters(), reduce_converters(), resize_converters(),
       shape_converters(), signal_converters(), unpool_converters()}));
  return *table;
}

// What com.microsoft had before ONNX did, with the same inputs and attributes.
constexpr std::string_view kSameAsStandard[] = {"GatherND", "Gelu", "GridSample",
                                                "SimplifiedLayerNormalization", "Trilu"};

Table make_microsoft_table() {
  Table table = make_table({microsoft_activation_converters(), microsoft_attention_converters(),
                            microsoft_fused_converters(), microsoft_grouped_attention_converters(),
                            microsoft_norm_converters(), microsoft_quantised_converters(),
                            microsoft_rotary_converters()});
  for (std::string_view op : kSameAsStandard) add_row(table, standard_table().at(std::string(op)));
  return table;
}

const Table& microsoft_table() {
  static const Table* table = new Table(make_microsoft_table());
  return *table;
}

bool is_microsoft_domain(const std::string& domain) { return domain == "com.microsoft"; }

using Reasons = std::unordered_map<std::string_view, std::string_view>;

std::string_view look_up(const Reasons& reasons, const std::string& op) {
  auto it = reasons.find(op);
  return it == reasons.end() ? std::string_view() : it->second;
}

std::string_view reason_standard(const std::string& op) {
  static const auto* reasons = new Reasons{
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
  return look_up(*reasons, op);
}

std::string_view reason_microsoft(const std::string& op) {
  static const auto* reasons = new Reasons{
      {"BeamSearch", "control flow"},
      {"GreedySearch", "control flow"},
      {"Sampling", "control flow"},
      {"WhisperBeamSearch", "control flow"},
      {"DequantizeLinear", "quantised types"},
      {"DynamicQuantizeLSTM", "quantised types"},
      {"DynamicQuantizeMatMul", "quantised types"},
      {"MatMulIntegerToFloat", "quantised types"},
      {"QAttention", "quantised types"},
      {"QEmbedLayerNormalization", "quantised types"},
      {"QGemm", "quantised types"},
      {"QuantizeLinear", "quantised types"},
      {"DecoderMaskedMultiHeadAttention", "a cache of keys and values"},
      {"DecoderMaskedSelfAttention", "a cache of keys and values"},
      {"PagedAttention", "a cache of keys and values"},
      {"SparseAttention", "a cache of keys and values"},
      {"Tokenizer", "strings"},
      {"Unique", "the shape of the result depends on values"},
  };
  if (op.rfind("QLinear", 0) == 0 || op.rfind("QOrdered", 0) == 0) return "quantised types";
  return look_up(*reasons, op);
}

}  // namespace

const ConverterRow* find_converter(const std::string& domain, const std::string& op) {
  const Table* table = is_standard_domain(domain)    ? &standard_table()
                       : is_microsoft_domain(domain) ? &microsoft_table()
                                                     : nullptr;
  if (table == nullptr) return nullptr;
  auto it = table->find(op);
  return it == table->end() ? nullptr : &it->second;
}

std::string_view reason_left_out(const std::string& domain, const std::string& op) {
  if (is_standard_domain(domain)) return reason_standard(op);
  return is_microsoft_domain(domain) ? reason_microsoft(op) : std::string_view();
}

}  // namespace collage::frontend
