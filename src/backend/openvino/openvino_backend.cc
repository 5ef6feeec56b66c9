#include "backend/openvino/openvino_backend.h"

#include "backend/fingerprint.h"
#include "backend/lost_nan.h"
#include "backend/openvino/compile_function.h"
#include "backend/openvino/kernels/loaders.h"
#include "backend/openvino/kernels/openvino_kernel.h"
#include "backend/openvino/translate.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "partition/rules/anchor_union.h"
#include "partition/rules/combine_by_primitives.h"
#include "partition/rules/max_coalesce.h"
#include "partition/rules/op_predicate.h"
#include "partition/rules/union_rule.h"

namespace collage {

namespace {

// Single operators, short chains as Relay would fuse them, chains side by side that read one tensor
// (of which the toolchain may make one product, and which share a switch to its threads), pairs of
// anchors one after the other, and the largest regions.
PartitionRulePtr make_rule() {
  PartitionRulePtr operators = std::make_shared<OpPredicatePartitionRule>(
      "openvino.operator", [](const CallNode& call) { return openvino::can_translate(call).ok(); });
  CombineConfig chains;
  chains.max_depth = 4;
  chains.max_ops = 6;
  chains.max_per_exit = 4;
  chains.maximal = false;
  PartitionRulePtr combined =
      std::make_shared<CombineByPrimitivesPartitionRule>("openvino.chain", operators, chains);
  PartitionRulePtr siblings = std::make_shared<HorizontalPartitionRule>(
      "openvino.siblings", combined, HorizontalPartitionRule::Options{.all_or_none = true});
  PartitionRulePtr stacked = std::make_shared<VerticalPartitionRule>("openvino.stacked", combined);
  PartitionRulePtr regions =
      std::make_shared<MaxCoalescePartitionRule>("openvino.region", operators);
  return std::make_shared<UnionPartitionRule>(
      "openvino", std::vector<PartitionRulePtr>{operators, combined, siblings, stacked, regions});
}

// The library packs weights in memory of its own.
constexpr char kHalf[] = "bfloat16";  // the schedule of variants that round

Variant plain_variant(const Function& function) {
  Variant variant = Variant::plain("ov", function);
  variant.weights.clear();
  return variant;
}

// Float tensors at the boundary, bfloat16 inside.
Variant lowered_variant(const Function& function) {
  Variant variant = plain_variant(function);
  variant.name = "ov bf16";
  variant.rounding = rounding::kBFloat16;
  variant.schedule = kHalf;
  variant.work.unit = "bfloat16";
  variant.work.constants = 0.5;
  return variant;
}

// Whether it calls an operator whose name starts like one of these.
bool calls(const Function& flat, std::initializer_list<std::string_view> families) {
  for (const Expr& expr : post_order(flat->body)) {
    const auto* call = as<CallNode>(expr);
    if (call == nullptr || call->op == nullptr) continue;
    for (std::string_view family : families)
      if (call->op->name.starts_with(family)) return true;
  }
  return false;
}
// For which bfloat16 has instructions of its own.
bool multiplies(const Function& flat) {
  return calls(flat, {"nn.conv", "nn.dense", "nn.matmul", "nn.batch_matmul", "nn.attention"});
}

// FakeQuantize multiplies by the reciprocal of the scale, adds the zero point and rounds then.
// Behind sums of products that is one order of rounding among others; what is quantised without
// lies in the middle of two integers often, and becomes the wrong one.
Status check_rounding(const Function& flat) {
  if (!calls(flat, {"qnn.quantize"}) || multiplies(flat)) return {};
  if (calls(flat, {"qnn.conv", "qnn.dense", "qnn.matmul"})) return {};
  return unsupported("openvino: quantising without a product, which it rounds another way");
}

// Besides what oneDNN computes, the plugin's own code, by the same maxima and comparisons.
std::vector<std::string_view> losing_nan() {
  std::vector<std::string_view> names = losing_nan_in_onednn();
  names.insert(names.end(), {"nn.l2_normalize", "nn.rnn", "nn.deformable_conv", "scatter_elements",
                             "scatter_nd", "topk"});
  return names;
}

class OpenVinoBackend : public Backend {
 public:
  OpenVinoBackend()
      : Backend("openvino", [] {
          return BackendTraits{
              .version = fmt::format("{}+{}", ov::get_openvino_version().buildNumber,
                                     source_fingerprint("openvino")),
              .priority = 30,
              .prefers_maximal_regions = true,
              .compiles_fast = true,
              .brings_own_threads = true,
              .lowers = openvino::has_bf16(),
              .loses_nan = losing_nan(),
              .kernels = {{.name = "float32", .computes = "whole sub-graphs"},
                          {.name = "nn.lrn", .computes = "… that hold nn.lrn", .spreads_nan = true},
                          {.name = "bf16",
                           .computes = "… with products",
                           .isa = "AVX-512 BF16",
                           .rounding = rounding::kBFloat16,
                           .work = {.unit = "bfloat16", .constants = 0.5}}},
              .runtimes = {"tbb"}};
        }) {}
  Status available() const override {
    TRY(openvino::shared_core());
    return {};
  }
  PartitionRulePtr partition_rule(const Target&) const override { return rule_; }

  Result<std::vector<Variant>> variants(const Function& function, const Target&,
                                        const CompileOptions& options) const override {
    Function flat = TRY(inline_calls(function));
    TRY(openvino::translate(flat));
    TRY(check_rounding(flat));
    Variant variant = plain_variant(function);
    variant.spreads_nan = calls(flat, {"nn.lrn"});  // to other channels than those of its window
    std::vector<Variant> list{variant};
    if (options.rounding == RoundingLimit::kAny && openvino::has_bf16() && multiplies(flat))
      list.push_back(lowered_variant(function));
    return list;
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&,
                                          const CompileOptions& options) const override {
    const bool half = variant.schedule == kHalf;
    if (!(variant == (half ? lowered_variant(function) : plain_variant(function))))
      return unsupported("openvino: no variant {}", variant.to_string());
    return openvino::compile_function(function, half ? ov::element::bf16 : ov::element::f32,
                                      options.threads);
  }

 private:
  PartitionRulePtr rule_ = make_rule();
};

}  // namespace

std::unique_ptr<Backend> make_openvino_backend() {
  openvino::register_loaders();
  return std::make_unique<OpenVinoBackend>();
}

}  // namespace collage
