#include "backend/contraction/contraction_offer.h"

#include <limits>

#include "backend/contraction/kernels/contraction_kernel.h"
#include "backend/contraction/read_contraction.h"
#include "backend/contraction/read_step.h"
#include "base/integers.h"
#include "ir/op.h"
#include "partition/rules/anchor_epilogue.h"
#include "partition/rules/anchor_union.h"
#include "partition/rules/union_rule.h"

namespace collage::contraction {
namespace {

constexpr int64_t kFewestRows = 8;  // below, weights are read faster than the unit multiplies them
constexpr int64_t kFewestChannels = 16;  // below, tiles are mostly padding

bool starts(const Match& match) { return check_anchor(*as<CallNode>(match.root)).ok(); }
bool starts_enlarging(const Match& match) {
  return starts(match) && repeats_of_image(*as<CallNode>(match.root)).has_value();
}

bool follows(const EpilogueStep& step) {
  return read_step(step.call, step.data_arg, channel_axis(*as<CallNode>(step.anchor.root)))
      .has_value();
}

/// A convolution, maybe with its bias.
DFPattern biased_convolution() {
  return is_op_among({"nn.conv1d", "nn.conv2d", "nn.conv3d"})(wildcard(), is_constant())
      .optional([](DFPattern conv) { return is_op("nn.bias_add")(conv, is_constant()); });
}
/// Of that.
const CallNode& convolution_in(const Expr& biased) {
  const CallNode& call = *as<CallNode>(biased);
  return call.op->name == "nn.bias_add" ? *as<CallNode>(call.args[0]) : call;
}
bool starts_adding(const Match& match) {
  const CallNode& sum = *as<CallNode>(match.root);
  return sum.args[0] != sum.args[1] && sum.args[0]->type() == sum.args[1]->type() &&
         are_addends(convolution_in(sum.args[0]), convolution_in(sum.args[1]));
}
bool follows_image(const EpilogueStep& step) {
  return read_step(step.call, step.data_arg, 1).has_value();
}

/// `function` is flat.
Result<Contraction> read(const Function& function) {
  Contraction c = TRY(read_contraction(function));
  if (c.pass_rows() < kFewestRows) return unsupported("{} rows", c.pass_rows());
  // Where rows of the result begin is kept in 32 bits.
  for (const Branch& branch : c.branches) {
    const int64_t elements =
        c.images * c.pixels_out() * round_up(branch.out_channels, int64_t{kTileColumns});
    if (elements > std::numeric_limits<int32_t>::max())
      return unsupported("a result of {} elements", elements);
  }
  if (c.in_channels < kFewestChannels) return unsupported("{} channels", c.in_channels);
  return c;
}

/// The variant of the schedule: images are blocked by channels, matrices plain.
Variant variant_of(const Contraction& c, const Schedule& schedule, const Function& function) {
  Variant variant = plain_variant(schedule.to_string(), schedule.parts, function);
  // Weights of products are packed alike whatever the rows.
  variant.weights =
      c.channels_last ? fmt::format("contraction {}", schedule.parts.right) : std::string();
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

}  // namespace

PartitionRulePtr make_contraction_rule(const std::string& name) {
  const auto contractions = std::make_shared<AnchorEpiloguePartitionRule>(
      name,
      is_op_among({"nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv1d_transpose",
                   "nn.conv2d_transpose", "nn.conv3d_transpose", "nn.dense", "nn.matmul",
                   "nn.batch_matmul"}),
      starts, follows);
  const auto enlarging = std::make_shared<AnchorEpiloguePartitionRule>(
      name,
      is_op_among({"nn.conv1d", "nn.conv2d", "nn.conv3d"})(
          is_op_among({"image.resize1d", "image.resize2d", "image.resize3d"})(wildcard()),
          is_constant()),
      starts_enlarging, follows);
  const auto siblings = std::make_shared<HorizontalPartitionRule>(
      name + ".siblings", contractions,
      HorizontalPartitionRule::Options{.accepts = are_siblings, .all_or_none = true});
  const auto adding = std::make_shared<AnchorEpiloguePartitionRule>(
      name, is_op("add")(biased_convolution(), biased_convolution()), starts_adding, follows_image);
  return std::make_shared<UnionPartitionRule>(
      name, std::vector<PartitionRulePtr>{contractions, siblings, enlarging, adding});
}

KernelRow row_of(const Parts& parts) {
  KernelRow row{.name = parts.name(),
                .computes = "products, convolutions",
                .tile = "shares of rows or of columns, which are outermost"};
  // What is left of an infinity beside its first part is NaN.
  row.spreads_nan = parts.left > 1;
  if (parts.left < 3)
    row.rounding = parts.left == 2 ? rounding::kBFloat16Pairs : rounding::kBFloat16Factors;
  row.work = {.multiplications = static_cast<double>(parts.products()),
              .unit = "bfloat16",
              .constants = parts.left == 1 ? 0.5 : 1};
  return row;
}

Variant plain_variant(std::string name, const Parts& parts, const Function& function) {
  return row_of(parts).variant(Variant::plain(std::move(name), function));
}

Result<std::vector<Variant>> contraction_variants(const Function& function, const Function& flat,
                                                  const Parts& parts, int threads) {
  const Contraction c = TRY(read(flat));
  std::vector<Variant> list;
  for (const Schedule& schedule : schedules(c, parts, threads)) {
    list.push_back(variant_of(c, schedule, function));
    list.back().schedule = std::to_string(list.size() - 1);
  }
  return list;
}

Result<std::unique_ptr<Kernel>> compile_contraction(const Function& function, const Function& flat,
                                                    const Variant& variant, const Parts& parts,
                                                    std::string_view schedule,
                                                    const MicroKernel& micro_kernel, int threads) {
  Contraction c = TRY(read(flat));
  const std::vector<Schedule> list = schedules(c, parts, threads);
  const std::optional<size_t> position = position_in(schedule, list.size());
  if (!position || !(variant == variant_of(c, list[*position], function)))
    return unsupported("no variant {}", variant.to_string());
  return make_contraction_kernel(std::move(c), list[*position], micro_kernel, threads);
}

}  // namespace collage::contraction
