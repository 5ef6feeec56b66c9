#include "backend/native/kernel_choices.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "backend/native/called_program.h"
#include "backend/native/codegen/vector_width.h"
#include "backend/native/templates/conv_blocking.h"
#include "backend/native/templates/conv_template.h"
#include "backend/native/templates/conv_weights.h"
#include "backend/native/templates/depthwise_template.h"
#include "backend/native/templates/upsampled_conv_template.h"
#include "backend/native/templates/winograd_template.h"
#include "ir/visitor.h"
#include "tensor_program/emit/collapse.h"

namespace collage::native {

bool computes_stages(const Function& function) {
  const std::vector<Expr> order = post_order(function->body);
  return calls_program(function) && std::none_of(order.begin(), order.end(), [](const Expr& node) {
           const auto* call = as<CallNode>(node);
           return call != nullptr && call->op != nullptr && is_template_anchor(*call);
         });
}

bool has_avx512() { return vector_width() >= 16; }

ChannelLayout layout_of(const Encoding& encoding) {
  if (encoding.layout.is_plain()) return ChannelLayout::kPlain;
  return encoding.layout.blocks().empty() ? ChannelLayout::kLast : ChannelLayout::kBlocked;
}

std::vector<ChannelLayout> layouts_of(const Variant& variant) {
  std::vector<ChannelLayout> layouts;
  for (const Encoding& input : variant.inputs) layouts.push_back(layout_of(input));
  layouts.push_back(layout_of(variant.outputs[0]));
  return layouts;
}

std::vector<bool> prologue_params(const KernelGroup& group) {
  std::vector<bool> found(group.function->params.size(), false);
  for (const Expr& node : post_order(group.anchor->args[0])) {
    for (size_t i = 0; i < found.size(); ++i)
      found[i] = found[i] || group.function->params[i] == node;
  }
  return found;
}

Function collapsed_for(const Function& function, const Variant& variant) {
  bool blocked = false;
  for (const Encoding& e : variant.inputs) blocked = blocked || !e.layout.is_plain();
  for (const Encoding& e : variant.outputs) blocked = blocked || !e.layout.is_plain();
  return tensor_program::collapse_dims(function, blocked ? 2 : 0);
}

std::vector<ConvChoice> conv_choices(const KernelGroup& group, ChannelLayout in, ChannelLayout out,
                                     int threads) {
  ConvProblem p;
  p.shape = group.conv;
  p.in_layout = in;
  p.out_layout = out;
  p.input_is_buffer = group.anchor->args[0]->kind() == ExprKind::kVar;
  std::vector<ConvChoice> choices;
  const auto add = [&](std::string kind, const auto& s, std::vector<int64_t> packed,
                       const auto& pack, const auto& build) -> ConvChoice& {
    ConvChoice& choice = choices.emplace_back();
    choice.kind = std::move(kind);
    choice.name = s.to_string();
    choice.packed = std::move(packed);
    choice.pack = [=](const float* weights) { return pack(p, s, weights); };
    choice.build = [=](const Access& data, Halide::ImageParam weights, const Epilogue& epilogue) {
      return build(p, s, data, std::move(weights), epilogue);
    };
    return choice;
  };
  // Of templates that pack alike whatever the schedule.
  const auto plainly = [](const auto& pack) {
    return [=](const ConvProblem& problem, const auto&, const float* weights) {
      return pack(problem, weights);
    };
  };
  if (group.kind == KernelGroup::Kind::kDepthwise) {
    if (in != out) return choices;
    for (const DepthwiseSchedule& s : depthwise_schedules(p, threads, has_avx512()))
      add("depthwise", s, packed_depthwise_extents(p), plainly(pack_depthwise_weights),
          build_depthwise);
    return choices;
  }
  for (const WinogradSchedule& s : winograd_schedules(p, threads, has_avx512()))
    add("winograd" + std::to_string(s.outputs), s, packed_winograd_extents(p, s),
        pack_winograd_weights, build_winograd)
        .reads_ahead = s.ahead;
  if (group.small_image != nullptr)
    for (const UpsampledSchedule& s : upsampled_schedules(p, threads, has_avx512()))
      add("upsampled", s, packed_upsampled_extents(p), plainly(pack_upsampled_weights),
          build_upsampled)
          .of_small_image = true;
  for (const ConvSchedule& s : conv_schedules(p, threads, has_avx512())) {
    // Multiplies the channels of other groups by 0.
    const bool joins = s.vectors == ConvSchedule::Vectors::kChannels && conv_blocking(p).diagonal;
    add(joins ? "joined groups" : "convolution", s, packed_conv_extents(p, s), pack_conv_weights,
        build_conv)
        .reads_ahead = s.ahead;
  }
  return choices;
}

std::string ConvChoice::weight_form() const {
  return fmt::format("native {} {}", kind, fmt::join(packed, "x"));
}

std::string weight_form(const MatmulProblem& problem, bool half) {
  if (!problem.constant_b) return kPlainWeights;
  return fmt::format("native {} panels {}", half ? "bfloat16" : "float32",
                     fmt::join(packed_matmul_extents(problem.shape), "x"));
}

MatmulProblem matmul_problem(const KernelGroup& group) {
  MatmulProblem problem;
  problem.shape = group.matmul;
  problem.constant_b = group.constant_b;
  const CallNode& anchor = *group.anchor;
  const bool transposed = anchor.op->name != "nn.dense" && anchor.attrs.flag("transpose_a");
  problem.a_is_buffer = anchor.args[0]->kind() == ExprKind::kVar && !transposed;
  return problem;
}

}  // namespace collage::native
