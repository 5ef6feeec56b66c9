#include "backend/native/called_program.h"

#include <algorithm>
#include <unordered_set>

#include "backend/native/codegen/array_size.h"
#include "backend/native/integers/real_products.h"
#include "backend/native/kernel_group.h"
#include "ir/visitor.h"
#include "tensor_program/accesses.h"
#include "tensor_program/call.h"
#include "tensor_program/emit/collapse.h"
#include "tensor_program/emit/emit.h"
#include "tensor_program/intrinsic.h"
#include "tensor_program/magnitude.h"
#include "tensor_program/pattern_kind.h"

namespace collage::native {
namespace {

using tensor_program::ChannelLayout;
using tensor_program::Primitive;
using tensor_program::PrimitiveKind;
using tensor_program::Program;
using tensor_program::Stage;

constexpr int64_t kLanes = 16;
constexpr size_t kMostExternalInputs = 3;  // collage_call_external1 to 3 (runtime_hooks.cc)
constexpr size_t kMostStages = 256;        // each may be computed inside the next

bool read_whole(const Program& program, const std::string& name) {
  return std::any_of(program.stages.begin(), program.stages.end(), [&](const Stage& stage) {
    const auto& inputs = stage.external.inputs;
    return std::find(inputs.begin(), inputs.end(), name) != inputs.end();
  });
}

/// Stages that cannot be inlined first; the innermost axis by lanes, the outermost by threads.
void schedule_plainly(Program& program) {
  for (const Stage& stage : program.stages) {
    const bool whole =
        !stage.updates.empty() || !stage.external.label.empty() || read_whole(program, stage.name);
    if (whole && !stage.is_result)
      program.schedule.push_back({stage.name, -1, PrimitiveKind::kComputeRoot, {}});
    if (!stage.external.label.empty() || stage.axes.empty()) continue;
    const auto add = [&](int update) {
      const auto& axes = stage.axes;
      if (axes.back().extent >= kLanes)
        program.schedule.push_back(
            {stage.name, update, PrimitiveKind::kVectorise, {axes.back().name}, kLanes});
      if (axes.size() > 1)
        program.schedule.push_back(
            {stage.name, update, PrimitiveKind::kParallel, {axes.front().name}});
    };
    if (whole || stage.is_result) add(-1);
    for (size_t u = 0; u < stage.updates.size(); ++u) {
      if (tensor_program::writes_own_elements(stage, stage.updates[u])) add(static_cast<int>(u));
    }
  }
}

/// Whether the step is by a user's intrinsic that this machine has no lowering of: loops stay.
bool is_without_lowering(const Primitive& step) {
  if (step.kind != PrimitiveKind::kTensorise) return false;
  const tensor_program::Intrinsic& intrinsic = *tensor_program::find_intrinsic(step);
  return intrinsic.is_users && intrinsic.call == nullptr;
}

/// Whether the step cuts a whole axis of a result, or of a stage of `whole` ones: its last part is
/// then moved back to end where the array does, which costs less than a guard.
bool ends_with_its_array(const Program& program, const Primitive& step,
                         const std::unordered_set<std::string>& whole) {
  const Stage& stage = *program.find_stage(step.stage);
  if (!stage.is_result && whole.count(stage.name) == 0) return false;
  if (step.update >= 0 || !stage.value.defined()) return false;
  return std::any_of(stage.axes.begin(), stage.axes.end(), [&](const tensor_program::Axis& axis) {
    return axis.name == step.names[0] && axis.extent >= step.number;
  });
}

/// What compiled code takes for granted.
Status check_limits(const Program& program) {
  if (program.stages.size() > kMostStages)
    return unsupported("native: a tensor program of {} stages", program.stages.size());
  TRY(check_array_sizes(program));
  for (const Stage& stage : program.stages) {
    for (const tensor_program::Update& update : stage.updates)
      for (const tensor_program::Axis& axis : update.over)
        if (axis.extent > kMostBytes) return unsupported("native: {}:{}", axis.name, axis.extent);
    if (stage.external.label.empty()) continue;
    const std::vector<std::string>& inputs = stage.external.inputs;
    if (inputs.empty() || inputs.size() > kMostExternalInputs)
      return unsupported("native: an external function of {} tensors", inputs.size());
    bool real = stage.dtype == DType::kFloat32;
    for (const std::string& input : inputs)
      real = real && program.type_of(input).dtype == DType::kFloat32;
    if (!real) return unsupported("native: an external function of other arrays than float32");
  }
  return {};
}

}  // namespace

Result<std::optional<Program>> called_program(const Function& flat) {
  const CallNode* call = as_op(flat->body, tensor_program::kCallOp);
  if (call == nullptr) return std::optional<Program>();
  Program program = TRY(tensor_program::program_of_call(*call));
  size_t next = 0;
  for (tensor_program::Buffer& buffer : program.buffers) {
    if (buffer.is_constant) continue;
    const Expr& arg = call->args[next++];
    const auto& params = flat->params;
    if (const auto* constant = as<ConstantNode>(arg)) {
      buffer.is_constant = true;
      buffer.value = constant->value;
    } else if (const auto param = std::find(params.begin(), params.end(), arg);
               param != params.end()) {
      buffer.param = static_cast<int>(param - params.begin());
    } else {
      return std::optional<Program>();  // of what is computed in the same kernel
    }
  }
  TRY(check_limits(program));
  std::erase_if(program.schedule, is_without_lowering);
  if (program.schedule.empty()) schedule_plainly(program);
  return std::optional<Program>(guarded_loops(std::move(program)));
}

Status check_array_sizes(const Program& program) {
  for (const tensor_program::Buffer& buffer : program.buffers)
    TRY(check_array_size(buffer.name, buffer.type));
  for (const Stage& stage : program.stages)
    TRY(check_array_size(stage.name, {stage.shape(), stage.dtype}));
  return {};
}

bool calls_program(const Function& flat) {
  const std::vector<Expr> order = post_order(flat->body);
  return std::any_of(order.begin(), order.end(), [](const Expr& node) {
    return as_op(node, tensor_program::kCallOp) != nullptr;
  });
}

Result<Program> emitted_stages(const Function& flat, std::vector<ChannelLayout> layouts) {
  const CallNode* call = as_op(flat->body, tensor_program::kCallOp);
  if (call != nullptr && std::none_of(call->args.begin(), call->args.end(), [](const Expr& arg) {
        return arg->kind() == ExprKind::kCall || arg->kind() == ExprKind::kTupleGetItem;
      })) {
    const Program program = TRY(tensor_program::program_of_call(*call));
    if (!program.schedule.empty())
      return unsupported("native: a tensor program alone keeps the schedule it brings");
  }
  const bool calls = calls_program(flat);
  Function function = calls ? flat : tensor_program::collapse_dims(flat, layouts.empty() ? 0 : 2);
  tensor_program::EmitForm form{.joins_by_parts = true, .layouts = std::move(layouts)};
  if (!calls && !has_integer_product(function)) {
    const KernelGroup group = TRY(analyse_group(function));
    form.row_stages = group.row_stages;
    // Behind it are views alone, of the same bytes.
    if (group.results.size() == 1) function = make_function(function->params, group.results[0]);
  }
  Program program = tensor_program::simplified_by_magnitude(
      TRY(tensor_program::emit(function, form).with_context("native")));
  TRY(check_limits(program));
  if (!calls) return program;
  // What was proven of a parameter's elements need not hold of what computes them here.
  const Status inside = tensor_program::check_accesses(program);
  if (!inside.ok()) return unsupported("native: {}", inside.message());
  return program;
}

Program guarded_loops(Program program) {
  std::unordered_set<std::string> whole;
  for (const Primitive& step : program.schedule)
    if (step.kind == PrimitiveKind::kComputeRoot) whole.insert(step.stage);
  for (Primitive& step : program.schedule)
    if (step.kind == PrimitiveKind::kSplit || step.kind == PrimitiveKind::kVectorise)
      step.guarded = step.guarded || !ends_with_its_array(program, step, whole);
  return program;
}

}  // namespace collage::native
