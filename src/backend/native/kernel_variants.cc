#include "backend/native/kernel_variants.h"

#include <algorithm>

#include "backend/native/called_program.h"
#include "backend/native/integers/dot_products.h"
#include "backend/native/integers/integer_products.h"
#include "backend/native/integers/real_products.h"
#include "backend/native/kernel_choices.h"
#include "backend/native/stages/stage_choices.h"
#include "backend/native/symbolic/symbolic_kernel.h"
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

/// A variant of the row on a function.
Variant variant_of(std::string_view row, std::string name, std::string_view schedule,
                   const Variant& encodings) {
  return kernel_row(row).variant(
      {std::move(name), encodings.inputs, encodings.outputs, schedule_of(row, schedule)});
}
Variant plain_variant(std::string_view row, std::string name, std::string_view schedule,
                      const Function& function) {
  return variant_of(row, std::move(name), schedule, Variant::plain("", function));
}

void add(std::vector<Variant>& variants, Variant variant) {
  if (std::find(variants.begin(), variants.end(), variant) == variants.end())
    variants.push_back(std::move(variant));
}

bool is_kind(const Problem& problem, KernelGroup::Kind kind) {
  return !problem.stages && problem.group.ok() && problem.group->kind == kind;
}

}  // namespace

Result<std::vector<Variant>> convolution_variants(const Problem& problem) {
  std::vector<Variant> variants;
  const bool depthwise = is_kind(problem, KernelGroup::Kind::kDepthwise);
  if (!depthwise && !is_kind(problem, KernelGroup::Kind::kConv)) return variants;
  const Function& function = problem.flat;
  const KernelGroup& group = *problem.group;
  const std::vector<bool> prologue = prologue_params(group);
  const auto add_layout = [&](ChannelLayout in, ChannelLayout out, size_t most) {
    Variant encodings;
    for (size_t i = 0; i < function->params.size(); ++i) {
      encodings.inputs.push_back(
          encoding_of(function->params[i]->tensor_type(), prologue[i] ? in : out));
    }
    encodings.outputs.push_back(encoding_of(function->body->tensor_type(), out));
    // Collapsing dimensions may change the shape, and with it the schedules.
    auto collapsed = analyse_group(collapsed_for(function, encodings));
    if (!collapsed.ok()) return;
    size_t position = 0;
    for (const ConvChoice& choice : conv_choices(collapsed.value(), in, out, problem.threads)) {
      const bool exact = kernel_row(choice.kind).rounding.none();
      if (exact && most-- == 0) break;
      Variant variant = variant_of(choice.kind, choice.name, std::to_string(position++), encodings);
      variant.weights = choice.weight_form();
      add(variants, std::move(variant));
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
    if (image_in) add_layout(blocked, blocked, 2);
    if (!shared && !depthwise) {
      if (!image_in) add_layout(plain, blocked, 2);
      if (s.out_channels % kChannelBlock != 0 && image_in) add_layout(blocked, plain, 1);
    }
    if (depthwise && has_bytes(function)) add_layout(ChannelLayout::kLast, ChannelLayout::kLast, 1);
  }
  add_layout(plain, plain, image_in ? 1 : 2);
  if (variants.empty())
    return unsupported("native: no schedule for this {}", group.anchor->op->name);
  return variants;
}

namespace {

/// The products of the row with weights of that form.
Result<std::vector<Variant>> product_variants(const Problem& problem, std::string_view row) {
  std::vector<Variant> variants;
  if (!is_kind(problem, KernelGroup::Kind::kMatmul)) return variants;
  const bool half = row == kHalfProducts;
  const Variant plain = Variant::plain("", problem.flat);
  const MatmulProblem product =
      matmul_problem(TRY(analyse_group(collapsed_for(problem.flat, plain))));
  constexpr int64_t kFewRows = 8;  // of which weights take longer to read than to multiply
  if (half && (!product.constant_b || product.shape.m >= kFewRows || !product.shape.has_heavy_b()))
    return variants;
  size_t position = 0;
  for (const MatmulSchedule& s : matmul_schedules(product, problem.threads, has_avx512())) {
    const std::string schedule = std::to_string(position++);
    if (half && s.ahead) continue;
    Variant variant =
        variant_of(row, s.to_string() + (half ? " bf16 weights" : ""), schedule, plain);
    variant.weights = weight_form(product, half);
    add(variants, std::move(variant));
  }
  return variants;
}

}  // namespace

Result<std::vector<Variant>> product_variants(const Problem& problem) {
  return product_variants(problem, kProducts);
}
Result<std::vector<Variant>> half_product_variants(const Problem& problem) {
  return product_variants(problem, kHalfProducts);
}

Result<std::vector<Variant>> attention_variants(const Problem& problem) {
  std::vector<Variant> variants;
  if (!is_kind(problem, KernelGroup::Kind::kAttention)) return variants;
  const AttentionSchedule schedule = attention_schedule(problem.group->attention, has_avx512());
  variants.push_back(plain_variant(kAttention, schedule.to_string(), "", problem.flat));
  return variants;
}

namespace {

Variant stage_variant(std::string_view row, const StageSchedule& schedule,
                      const Function& function) {
  const std::string text = schedule.to_string();
  Variant variant =
      plain_variant(row, row == kIntegers ? "integers " + text : text, text, function);
  if (schedule.packed || !schedule.intrinsic.empty()) variant.weights.clear();
  return variant;
}

/// Of functions of operators: one loop nest.
Result<std::vector<Variant>> fused_variants(const Problem& problem) {
  std::vector<Variant> variants;
  if (!is_kind(problem, KernelGroup::Kind::kGeneric)) return variants;
  const Function& function = problem.flat;
  StageSchedule schedule;
  if (problem.group->row_stages) schedule.rows = 1;
  variants.push_back(stage_variant(kStages, schedule, function));
  const auto add_layout = [&](ChannelLayout layout) {
    Variant variant = stage_variant(kStages, {}, function);
    for (size_t i = 0; i < variant.inputs.size(); ++i)
      variant.inputs[i] = encoding_of(function->params[i]->tensor_type(), layout);
    variant.outputs[0] = encoding_of(function->body->tensor_type(), layout);
    variants.push_back(std::move(variant));
  };
  // Between several reductions what a few rows of the result need may stay in a cache.
  if (const auto stages = emitted_stages(function); !problem.group->row_stages && stages.ok()) {
    const auto reductions =
        std::count_if(stages->stages.begin(), stages->stages.end(),
                      [](const tensor_program::Stage& stage) { return !stage.updates.empty(); });
    if (reductions > 1)
      for (const StageSchedule& rows : stage_schedules(*stages, problem.threads))
        if (rows.rows > 0) add(variants, stage_variant(kStages, rows, function));
  }
  if (problem.group->channels_last) add_layout(ChannelLayout::kLast);
  if (problem.group->blockable) add_layout(ChannelLayout::kBlocked);
  return variants;
}

}  // namespace

Result<std::vector<Variant>> dot_variants(const Problem& problem) {
  std::vector<Variant> variants;
  const Function& flat = problem.quantised;
  if (!has_integer_product(flat)) return variants;
  for (const ChannelLayout layout : {ChannelLayout::kLast, ChannelLayout::kPlain}) {
    Variant encodings = Variant::plain("", flat);
    std::vector<ChannelLayout> layouts;
    if (layout == ChannelLayout::kLast) {
      if (!is_image(flat->body->tensor_type())) continue;
      for (size_t i = 0; i < encodings.inputs.size(); ++i)
        encodings.inputs[i] = encoding_of(flat->params[i]->tensor_type(), layout);
      encodings.outputs[0] = encoding_of(flat->body->tensor_type(), layout);
      layouts = layouts_of(encodings);
    }
    const Result<tensor_program::Program> stages = emitted_stages(flat, std::move(layouts));
    if (!stages.ok()) continue;
    for (const StageSchedule& schedule : dot_schedules(*stages, problem.threads)) {
      Variant variant = stage_variant(kDots, schedule, flat);
      variant.inputs = encodings.inputs;
      variant.outputs = encodings.outputs;
      variants.push_back(std::move(variant));
    }
  }
  return variants;
}

Result<std::vector<Variant>> stage_variants(const Problem& problem) {
  if (!problem.stages) return fused_variants(problem);
  std::vector<Variant> variants;
  const Function& function = problem.flat;
  const bool alone = TRY(called_program(function)).has_value();
  const Result<tensor_program::Program> stages = emitted_stages(function);
  if (!stages.ok() && !alone) return stages.status();
  if (stages.ok()) {
    for (const StageSchedule& schedule : stage_schedules(*stages, problem.threads))
      variants.push_back(stage_variant(kStages, schedule, function));
    for (const StageSchedule& schedule : dot_schedules(*stages, problem.threads))
      variants.push_back(stage_variant(kDots, schedule, function));
  }
  // With the schedule that it brings, or a plain one, which is the last that is worth trying.
  if (alone) variants.push_back(plain_variant(kProgram, kProgram, "", function));
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
    return stage_variant(kStages, decided_schedule(*decisions, choice), function);
  };
  space.stated = [=](const std::string& text) -> std::optional<Variant> {
    const auto schedule = parse_stage_schedule(text.substr(0, text.find('(')));
    if (!schedule || !choice_of(*decisions, *schedule)) return std::nullopt;
    return stage_variant(kStages, *schedule, function);
  };
  return space;
}

Result<std::vector<Variant>> integer_variants(const Problem& problem) {
  std::vector<Variant> variants;
  // Products of quantised tensors are of integers without rounding.
  if (!is_kind(problem, KernelGroup::Kind::kMatmul) || !problem.group->constant_b ||
      !multiplies_integers_faster() || has_integer_product(problem.quantised))
    return variants;
  const Result<IntegerProducts> integers = with_integer_products(problem.flat);
  if (!integers.ok()) return variants;
  const tensor_program::Program stages = TRY(emitted_stages(integers->function));
  for (const StageSchedule& schedule : dot_schedules(stages, problem.threads)) {
    variants.push_back(stage_variant(kIntegers, schedule, problem.flat));
    variants.back().rounding.fixed_point = integers->rounding;
  }
  return variants;
}

Result<std::vector<Variant>> variants_over_symbols(const Problem& problem) {
  std::vector<Variant> variants;
  for (const SymbolicVariant& found : symbolic_variants(problem.flat, problem.threads)) {
    variants.push_back(plain_variant(kSymbolic, found.name, found.name, problem.flat));
    variants.back().weights = found.weights;
  }
  return variants;
}

}  // namespace collage::native
