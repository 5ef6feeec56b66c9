#include "backend/native/kernel_choices.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "backend/native/called_program.h"
#include "backend/native/codegen/vector_width.h"
#include "backend/native/stages/collapse.h"
#include "backend/native/templates/conv_blocking.h"
#include "backend/native/templates/conv_weights.h"
#include "ir/visitor.h"

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
  return collapse_dims(function, blocked ? 2 : 0);
}

std::vector<ConvChoice> conv_choices(const KernelGroup& group, ChannelLayout in, ChannelLayout out,
                                     int threads) {
  ConvProblem problem;
  problem.shape = group.conv;
  problem.in_layout = in;
  problem.out_layout = out;
  problem.input_is_buffer = group.anchor->args[0]->kind() == ExprKind::kVar;
  std::vector<ConvChoice> choices;
  if (group.kind == KernelGroup::Kind::kDepthwise) {
    if (in == out) {
      for (const DepthwiseSchedule& s : depthwise_schedules(problem, threads, has_avx512()))
        choices.push_back({problem, {}, s, {}, {}, s.to_string()});
    }
    return choices;
  }
  if (group.small_image != nullptr) {
    for (const UpsampledSchedule& s : upsampled_schedules(problem, threads, has_avx512()))
      choices.push_back({problem, {}, {}, s, {}, s.to_string()});
  }
  for (const WinogradSchedule& s : winograd_schedules(problem, threads, has_avx512()))
    choices.push_back({problem, {}, {}, {}, s, s.to_string()});
  for (const ConvSchedule& s : conv_schedules(problem, threads, has_avx512()))
    choices.push_back({problem, s, {}, {}, {}, s.to_string()});
  return choices;
}

bool joins_groups(const ConvChoice& choice) {
  return !choice.upsampled && !choice.winograd &&
         choice.conv.vectors == ConvSchedule::Vectors::kChannels &&
         conv_blocking(choice.problem).diagonal;
}

std::string weight_form(const ConvChoice& c, bool depthwise) {
  const auto form = [](std::string_view kind, const std::vector<int64_t>& extents) {
    return fmt::format("native {} {}", kind, fmt::join(extents, "x"));
  };
  if (c.upsampled) return form("upsampled", packed_upsampled_extents(c.problem));
  if (c.winograd)
    return form("winograd" + std::to_string(c.winograd->outputs),
                packed_winograd_extents(c.problem, *c.winograd));
  if (depthwise) return form("depthwise", packed_depthwise_extents(c.problem));
  return form("convolution", packed_conv_extents(c.problem, c.conv));
}

std::string weight_form(const MatmulProblem& problem, bool lowered) {
  if (!problem.constant_b) return kPlainWeights;
  return fmt::format("native {} panels {}", lowered ? "bfloat16" : "float32",
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
