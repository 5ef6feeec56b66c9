#include "backend/amx/amx_backend.h"

#include <algorithm>
#include <limits>

#include "backend/amx/attention.h"
#include "backend/amx/attention_kernel.h"
#include "backend/amx/attention_rule.h"
#include "backend/amx/contraction.h"
#include "backend/amx/contraction_kernel.h"
#include "backend/amx/peak.h"
#include "backend/fingerprint.h"
#include "base/integers.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "partition/rules/anchor_epilogue.h"
#include "partition/rules/anchor_union.h"
#include "partition/rules/union_rule.h"

namespace collage {
namespace amx {
namespace {

constexpr int64_t kFewestRows = 8;       // below, weights are read faster than they are multiplied
constexpr int64_t kFewestChannels = 16;  // below, tiles are mostly padding

bool starts(const Match& match) { return check_anchor(*as<CallNode>(match.root)).ok(); }
bool starts_enlarging(const Match& match) {
  return starts(match) && repeats_of_image(*as<CallNode>(match.root)).has_value();
}

bool follows(const EpilogueStep& step) {
  return read_step(step.call, step.data_arg, channel_axis(*as<CallNode>(step.anchor.root)))
      .has_value();
}

/// `function` is flat.
Result<Contraction> read(const Function& function) {
  Contraction c = TRY(read_contraction(function));
  if (c.pass_rows() < kFewestRows) return unsupported("amx: {} rows", c.pass_rows());
  // Where rows of the result begin is kept in 32 bits.
  for (const Branch& branch : c.branches) {
    const int64_t elements =
        c.images * c.pixels_out() * round_up(branch.out_channels, int64_t{kTileColumns});
    if (elements > std::numeric_limits<int32_t>::max())
      return unsupported("amx: a result of {} elements", elements);
  }
  if (c.in_channels < kFewestChannels) return unsupported("amx: {} channels", c.in_channels);
  return c;
}

Variant plain_variant(std::string name, Parts parts, const Function& function) {
  Variant variant = Variant::plain(std::move(name), function);
  variant.relaxed = parts.left == 2;
  variant.lowered = parts.left == 1;
  return variant;
}

/// The variant of the schedule: images are blocked by channels, matrices plain.
Variant variant_of(const Contraction& c, const Schedule& schedule, const Function& function) {
  Variant variant = plain_variant(schedule.to_string(), schedule.parts, function);
  if (c.channels_last) return variant;
  const auto block = [](Encoding& encoding, const TensorType& type) {
    encoding.layout =
        Layout::channels_blocked(static_cast<int64_t>(type.shape.size()), kTileColumns);
  };
  for (size_t i = 0; i < function->params.size(); ++i)
    block(variant.inputs[i], function->params[i]->tensor_type());
  const std::vector<TensorType> results = function->result_type().leaves();
  for (size_t i = 0; i < results.size(); ++i) block(variant.outputs[i], results[i]);
  return variant;
}

bool has_attention(const Function& function) {
  const std::vector<Expr> nodes = post_order(function->body);
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Expr& node) { return as_op(node, "nn.attention") != nullptr; });
}

Variant attention_variant(Parts parts, const Function& function) {
  return plain_variant(fmt::format("attention {}", parts.name()), parts, function);
}

/// Attention computes both operands, and cuts them alike.
bool has_attention_of(const Parts& parts) { return parts.left == parts.right; }

class AmxBackend : public Backend {
 public:
  std::string name() const override { return "amx"; }
  std::string version() const override { return source_fingerprint("amx"); }
  Status available() const override { return matrix_unit(); }
  int priority() const override { return 25; }

  PartitionRulePtr partition_rule(const Target&) const override {
    const auto contractions = std::make_shared<AnchorEpiloguePartitionRule>(
        "amx",
        is_op_among({"nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv1d_transpose",
                     "nn.conv2d_transpose", "nn.conv3d_transpose", "nn.dense", "nn.matmul",
                     "nn.batch_matmul"}),
        starts, follows);
    const auto enlarging = std::make_shared<AnchorEpiloguePartitionRule>(
        "amx",
        is_op_among({"nn.conv1d", "nn.conv2d", "nn.conv3d"})(
            is_op_among({"image.resize1d", "image.resize2d", "image.resize3d"})(wildcard()),
            is_constant()),
        starts_enlarging, follows);
    const auto siblings = std::make_shared<HorizontalPartitionRule>(
        "amx.siblings", contractions,
        HorizontalPartitionRule::Options{.accepts = are_siblings, .all_or_none = true});
    return std::make_shared<UnionPartitionRule>(
        "amx",
        std::vector<PartitionRulePtr>{contractions, siblings, enlarging, make_attention_rule()});
  }

  // `amx -parts=3` offers sums of six products instead of three: the accuracy of float32.
  Result<std::vector<Variant>> variants(const Function& function, const Target& target,
                                        const CompileOptions& options) const override {
    return variants_of(function, {parts_of(target)}, options);
  }

  std::optional<PeakProbe> peak_probe(const Target& target) const override {
    if (!matrix_unit().ok()) return std::nullopt;
    return PeakProbe{multiply_tiles_at_rest, 2 * kPeakRoundProducts / parts_of(target).products()};
  }

  bool lowers() const override { return matrix_unit().ok(); }
  Result<std::vector<Variant>> lowered_variants(const Function& function, const Target&,
                                                const CompileOptions& options) const override {
    return variants_of(function, {{1, 1}, {1, 2}}, options);
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&,
                                          const CompileOptions& options) const override {
    TRY(matrix_unit());  // asks for it
    const Function flat = TRY(inline_calls(function));
    if (has_attention(flat)) {
      Attention attention = TRY(read_attention(flat));
      for (const Parts& parts : kAllParts)
        if (has_attention_of(parts) && variant == attention_variant(parts, function))
          return make_attention_kernel(std::move(attention), parts.left, options.threads);
      return unsupported("amx: no variant {}", variant.to_string());
    }
    Contraction c = TRY(read(flat));
    for (const Parts& parts : kAllParts)
      for (const Schedule& schedule : schedules(c, parts, options.threads))
        if (variant == variant_of(c, schedule, function))
          return make_contraction_kernel(std::move(c), schedule, options.threads);
    return unsupported("amx: no variant {}", variant.to_string());
  }

 private:
  static Parts parts_of(const Target& target) {
    const auto given = target.options.find("parts");
    return given != target.options.end() && given->second == "3" ? Parts{3, 3} : Parts{2, 2};
  }
  static Result<std::vector<Variant>> variants_of(const Function& function,
                                                  const std::vector<Parts>& offered,
                                                  const CompileOptions& options) {
    const Function flat = TRY(inline_calls(function));
    std::vector<Variant> list;
    if (has_attention(flat)) {
      TRY(read_attention(flat));
      for (const Parts& parts : offered)
        if (has_attention_of(parts)) list.push_back(attention_variant(parts, function));
      return list;
    }
    const Contraction c = TRY(read(flat));
    for (const Parts& parts : offered)
      for (const Schedule& schedule : schedules(c, parts, options.threads))
        list.push_back(variant_of(c, schedule, function));
    return list;
  }
};

}  // namespace
}  // namespace amx

std::unique_ptr<Backend> make_amx_backend() { return std::make_unique<amx::AmxBackend>(); }

}  // namespace collage
