#include "frontend/onnx/operators/converters.h"

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
  static const Table* table = new Table(
      make_table({activation_converters(),  attention_converters(), cast_converters(),
                  constant_converters(),    conv_converters(),      deform_converters(),
                  determinant_converters(), einsum_converters(),    elementwise_converters(),
                  grid_converters(),        index_converters(),     linear_attention_converters(),
                  loss_converters(),        matmul_converters(),    ngram_converters(),
                  norm_converters(),        pool_converters(),      quantised_converters(),
                  random_converters(),      recurrent_converters(), reduce_converters(),
                  resize_converters(),      roi_converters(),       shape_converters(),
                  signal_converters(),      unpool_converters()}));
  return *table;
}

// What com.microsoft had before ONNX did, with the same inputs and attributes.
constexpr std::string_view kSameAsStandard[] = {"DequantizeLinear",
                                                "GatherND",
                                                "Gelu",
                                                "GridSample",
                                                "QuantizeLinear",
                                                "SimplifiedLayerNormalization",
                                                "Trilu"};

Table make_microsoft_table() {
  Table table = make_table({microsoft_activation_converters(), microsoft_attention_converters(),
                            microsoft_fused_converters(), microsoft_grouped_attention_converters(),
                            microsoft_norm_converters(), microsoft_qlinear_converters(),
                            microsoft_quantised_converters(), microsoft_rotary_converters()});
  for (std::string_view op : kSameAsStandard) add_row(table, standard_table().at(std::string(op)));
  return table;
}

const Table& microsoft_table() {
  static const Table* table = new Table(make_microsoft_table());
  return *table;
}

bool is_microsoft_domain(const std::string& domain) { return domain == "com.microsoft"; }

// Null for a domain that is not known.
const Table* table_of(const std::string& domain) {
  static const auto* small = new std::unordered_map<std::string, Table>{
      {"ai.onnx.ml", make_table({feature_converters()})},
      {"ai.onnx.preview", make_table({preview_converters()})},
      {"ai.onnx.preview.training", make_table({training_converters()})}};
  if (is_standard_domain(domain)) return &standard_table();
  if (is_microsoft_domain(domain)) return &microsoft_table();
  auto it = small->find(domain);
  return it == small->end() ? nullptr : &it->second;
}

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
      {"StringConcat", "strings"},
      {"StringNormalizer", "strings"},
      {"StringSplit", "strings"},
      {"RegexFullMatch", "strings"},
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
      {"DynamicQuantizeLSTM", "quantised types"},
      {"QAttention", "quantised types"},
      {"QEmbedLayerNormalization", "quantised types"},
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
  if (const Table* table = table_of(domain))
    if (auto it = table->find(op); it != table->end()) return &it->second;
  return find_defined_converter(domain, op);
}

std::string_view reason_left_out(const std::string& domain, const std::string& op) {
  if (is_standard_domain(domain)) return reason_standard(op);
  return is_microsoft_domain(domain) ? reason_microsoft(op) : std::string_view();
}

}  // namespace collage::frontend
