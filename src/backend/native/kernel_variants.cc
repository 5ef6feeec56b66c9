#include "backend/native/kernel_variants.h"

#include <algorithm>

#include "backend/native/called_program.h"
#include "backend/native/integers/integer_products.h"
#include "backend/native/integers/real_products.h"
#include "backend/native/kernel_choices.h"
#include "backend/native/stages/stage_choices.h"
#include "ir/visitor.h"

namespace collage::native {
namespace {

Encoding encoding_of(const TensorType& type, ChannelLayout layout) {
  Encoding encoding;
  encoding.dtype = type.dtype;
  if (!is_image(type)) return encoding;
  const auto rank = static_cast<int64_t>(type.shape.size());
  if (layout == ChannelLayout::kBlocked)
    encoding.layout = Layout::channels_blocked(rank, kChannelBlock);
  if (layout == ChannelLayout::kLast) encoding.layout = Layout::channels_last(rank);
  return encoding;
}

/// Products of bytes have their channels last: what lies between them may, too.
bool has_bytes(const Function& function) {
  const auto is_byte = [](const TensorType& type) {
    return is_integer(type.dtype) && dtype_size(type.dtype) == 1;
  };
  return is_byte(function->body->tensor_type()) ||
         std::any_of(function->params.begin(), function->params.end(),
                     [&](const Expr& param) { return is_byte(param->tensor_type()); });
}

std::vector<Variant> conv_variants(const Function& function, const KernelGroup& group,
                                   int threads) {
  std::vector<Variant> variants;
  const std::vector<bool> prologue = prologue_params(group);
  auto add = [&](ChannelLayout in, ChannelLayout out, size_t most) {
    Variant variant;
    for (size_t i = 0; i < function->params.size(); ++i) {
      variant.inputs.push_back(
          encoding_of(function->params[i]->tensor_type(), prologue[i] ? in : out));
    }
    variant.outputs.push_back(encoding_of(function->body->tensor_type(), out));
    // Collapsing dimensions may change the shape, and with it the schedules.
    auto collapsed = analyse_group(collapsed_for(function, variant));
    if (!collapsed.ok()) return;
    size_t position = 0;
    for (const ConvChoice& choice : conv_choices(collapsed.value(), in, out, threads)) {
      if (!choice.winograd && most-- == 0) break;
      variant.name = choice.name;
      variant.schedule = std::to_string(position++);
      const bool depthwise = group.kind == KernelGroup::Kind::kDepthwise;
      variant.spreads_nan = choice.winograd || (!depthwise && joins_groups(choice));
      variant.work = choice.winograd ? Work::of_winograd(choice.winograd->outputs) : Work();
      variant.weights = weight_form(choice, depthwise);
      variant.rounding = !choice.winograd                ? Rounding()
                         : choice.winograd->outputs == 2 ? rounding::kWinograd2
                                                         : rounding::kWinograd4;
      if (std::find(variants.begin(), variants.end(), variant) == variants.end())
        variants.push_back(variant);
    }
  };
  const ConvShape& s = group.conv;
  // Where a prologue parameter feeds the epilogue too, both sides must agree on its layout.
  bool shared = false;
  for (const Expr& node : group.order) {
    const auto* call = as<CallNode>(node);
    if (call == nullptr || call == group.anchor) continue;
    for (const Expr& arg : call->args) {
      for (size_t i = 0; i < prologue.size(); ++i)
        shared = shared || (prologue[i] && arg == function->params[i]);
    }
  }
  const bool image = is_image(function->body->tensor_type()) &&
                     group.results[0] == function->body && group.blockable;
  const bool image_in = s.in_channels >= 8;
  const ChannelLayout plain = ChannelLayout::kPlain, blocked = ChannelLayout::kBlocked;
  if (image) {
    if (image_in) add(blocked, blocked, 2);
    if (!shared && !is_depthwise(s)) {
      if (!image_in) add(plain, blocked, 2);
      if (s.out_channels % kChannelBlock != 0 && image_in) add(blocked, plain, 1);
    }
    if (is_depthwise(s) && has_bytes(function)) add(ChannelLayout::kLast, ChannelLayout::kLast, 1);
  }
  add(plain, plain, image_in ? 1 : 2);
  return variants;
}

std::vector<Variant> matmul_variants(const Function& function, const MatmulProblem& problem,
                                     int threads, bool lowered) {
  std::vector<Variant> variants;
  size_t position = 0;
  for (const MatmulSchedule& s : matmul_schedules(problem, threads, has_avx512())) {
    const std::string schedule = std::to_string(position++);
    if (lowered && s.ahead) continue;
    Variant variant = Variant::plain(s.to_string() + (lowered ? " bf16 weights" : ""), function);
    variant.schedule = lowered ? kHalfWeights + schedule : schedule;
    variant.weights = weight_form(problem, lowered);
    if (lowered) variant.rounding = rounding::kBFloat16Factors;
    if (lowered) variant.work.constants = 0.5;
    if (std::find(variants.begin(), variants.end(), variant) == variants.end())
      variants.push_back(variant);
  }
  return variants;
}

Result<std::vector<Variant>> all_variants(const Function& function, int threads) {
  const KernelGroup group = TRY(analyse_group(function));
  if (group.kind == KernelGroup::Kind::kConv || group.kind == KernelGroup::Kind::kDepthwise) {
    std::vector<Variant> variants = conv_variants(function, group, threads);
    if (variants.empty())
      return unsupported("native: no schedule for this {}", group.anchor->op->name);
    return variants;
  }
  if (group.kind == KernelGroup::Kind::kMatmul) {
    const Variant plain = Variant::plain("", function);
    const KernelGroup collapsed = TRY(analyse_group(collapsed_for(function, plain)));
    return matmul_variants(function, matmul_problem(collapsed), threads, false);
  }
  std::vector<Variant> variants;
  if (group.kind == KernelGroup::Kind::kAttention) {
    const AttentionSchedule schedule = attention_schedule(group.attention, has_avx512());
    variants.push_back(Variant::plain(schedule.to_string(), function));
    variants.back().spreads_nan = true;  // to other rows of a tile
    return variants;
  }
  variants.push_back(Variant::plain(group.row_stages ? "rows" : "fused", function));
  const auto add = [&](ChannelLayout layout) {
    Variant variant{"fused", {}, {}};
    for (const Expr& param : function->params)
      variant.inputs.push_back(encoding_of(param->tensor_type(), layout));
    variant.outputs.push_back(encoding_of(function->body->tensor_type(), layout));
    variants.push_back(std::move(variant));
  };
  if (group.channels_last) add(ChannelLayout::kLast);
  if (group.blockable) add(ChannelLayout::kBlocked);
  return variants;
}

Variant variant_of(const StageSchedule& schedule, const Function& function) {
  Variant variant = Variant::plain(schedule.to_string(), function);
  variant.schedule = variant.name;
  if (schedule.packed || !schedule.intrinsic.empty()) variant.weights.clear();
  return variant;
}

}  // namespace

std::vector<Variant> dot_variants(const Function& flat, int threads) {
  std::vector<Variant> variants;
  if (!has_integer_product(flat)) return variants;
  for (const ChannelLayout layout : {ChannelLayout::kLast, ChannelLayout::kPlain}) {
    Variant variant = Variant::plain("", flat);
    std::vector<ChannelLayout> layouts;
    if (layout == ChannelLayout::kLast) {
      if (!is_image(flat->body->tensor_type())) continue;
      for (size_t i = 0; i < variant.inputs.size(); ++i)
        variant.inputs[i] = encoding_of(flat->params[i]->tensor_type(), layout);
      variant.outputs[0] = encoding_of(flat->body->tensor_type(), layout);
      layouts = layouts_of(variant);
    }
    variant.weights.clear();
    const Result<tensor_program::Program> stages = emitted_stages(flat, std::move(layouts));
    if (!stages.ok()) continue;
    for (const StageSchedule& schedule : dot_schedules(*stages, threads)) {
      variant.name = variant.schedule = schedule.to_string();
      variants.push_back(variant);
    }
  }
  return variants;
}

Result<Function> flattened_for(const Function& function, const Variant& variant) {
  const std::optional<StageSchedule> schedule = parse_stage_schedule(variant.schedule);
  const bool quantised = schedule && !schedule->intrinsic.empty() && !schedule->integers;
  return quantised ? inline_calls(function) : flattened(function);
}

Result<std::vector<Variant>> kernel_variants(const Function& function, int threads) {
  if (!computes_stages(function)) return all_variants(function, threads);
  std::vector<Variant> variants;
  const bool alone = TRY(called_program(function)).has_value();
  const Result<tensor_program::Program> stages = emitted_stages(function);
  if (!stages.ok() && !alone) return stages.status();
  if (stages.ok()) {
    std::vector<StageSchedule> schedules = stage_schedules(*stages, threads);
    const std::vector<StageSchedule> dots = dot_schedules(*stages, threads);
    schedules.insert(schedules.end(), dots.begin(), dots.end());
    for (const StageSchedule& schedule : schedules)
      variants.push_back(variant_of(schedule, function));
  }
  // With the schedule that it brings, or a plain one, which is the last that is worth trying.
  if (alone) {
    variants.push_back(Variant::plain(kProgram, function));
    variants.back().schedule = kProgram;
  }
  return variants;
}

Result<ScheduleSpace> kernel_schedules(const Function& function, int threads) {
  ScheduleSpace space;
  if (!computes_stages(function) &&
      TRY(analyse_group(function)).kind != KernelGroup::Kind::kGeneric)
    return space;
  const Result<tensor_program::Program> stages = emitted_stages(function);
  if (!stages.ok()) return space;
  const auto decisions =
      std::make_shared<const std::vector<StageDecision>>(stage_decisions(*stages));
  for (const StageDecision& decision : *decisions) space.options.push_back(decision.options.size());
  for (const StageSchedule& schedule : stage_schedules(*stages, threads))
    if (auto choice = choice_of(*decisions, schedule)) space.start.push_back(std::move(*choice));
  space.variant = [=](const ScheduleSpace::Choice& choice) {
    return variant_of(decided_schedule(*decisions, choice), function);
  };
  space.stated = [=](const std::string& text) -> std::optional<Variant> {
    const auto schedule = parse_stage_schedule(text.substr(0, text.find('(')));
    if (!schedule || !choice_of(*decisions, *schedule)) return std::nullopt;
    return variant_of(*schedule, function);
  };
  return space;
}

Result<std::vector<Variant>> integer_variants(const Function& function, int threads) {
  std::vector<Variant> variants;
  const Result<IntegerProducts> integers = with_integer_products(function);
  if (!integers.ok()) return variants;
  const tensor_program::Program stages = TRY(emitted_stages(integers->function));
  for (StageSchedule schedule : dot_schedules(stages, threads)) {
    schedule.integers = true;
    variants.push_back(variant_of(schedule, function));
    variants.back().spreads_nan = true;
    variants.back().work = {.unit = "int16", .constants = 0.5};
    variants.back().rounding.fixed_point = integers->rounding;
  }
  return variants;
}

Result<std::vector<Variant>> lowered_kernel_variants(const Function& function, int threads,
                                                     bool integers) {
  if (computes_stages(function)) return std::vector<Variant>();
  const KernelGroup group = TRY(analyse_group(function));
  if (group.kind != KernelGroup::Kind::kMatmul) return std::vector<Variant>();
  const MatmulProblem problem =
      matmul_problem(TRY(analyse_group(collapsed_for(function, Variant::plain("", function)))));
  if (!problem.constant_b) return std::vector<Variant>();
  constexpr int64_t kFewRows = 8;  // of which weights take longer to read than to multiply
  std::vector<Variant> variants;
  if (problem.shape.m < kFewRows && problem.shape.has_heavy_b())
    variants = matmul_variants(function, problem, threads, true);
  if (!integers) return variants;
  std::vector<Variant> more = TRY(integer_variants(function, threads));
  std::move(more.begin(), more.end(), std::back_inserter(variants));
  return variants;
}

}  // namespace collage::native
