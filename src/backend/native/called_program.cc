#include "backend/native/called_program.h"

#include <algorithm>

#include "tensor_program/call.h"

namespace collage::native {
namespace {

using tensor_program::Primitive;
using tensor_program::PrimitiveKind;
using tensor_program::Program;
using tensor_program::Stage;

constexpr int64_t kLanes = 16;
constexpr size_t kMostExternalInputs = 3;  // collage_call_external1 to 3 (runtime_hooks.cc)
constexpr size_t kMostStages = 256;        // each may be computed inside the next
constexpr int64_t kMostBytes = INT32_MAX;  // of an array: offsets are 32 bits wide

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
      const auto& at = stage.updates[u].at;
      bool own = true;  // every point of the stage is written from its own
      for (size_t d = 0; d < at.size(); ++d)
        own = own && tensor_program::same(at[d], tensor_program::var(stage.axes[d].name));
      if (own) add(static_cast<int>(u));
    }
  }
}

/// Whether the step cuts a whole axis of a result: its last part is then moved back to end where
/// the array does, which costs less than a guard.
bool ends_with_its_array(const Program& program, const Primitive& step) {
  const Stage& stage = *program.find_stage(step.stage);
  if (!stage.is_result || step.update >= 0 || !stage.value.defined()) return false;
  return std::any_of(stage.axes.begin(), stage.axes.end(), [&](const tensor_program::Axis& axis) {
    return axis.name == step.names[0] && axis.extent >= step.number;
  });
}

/// What compiled code takes for granted.
Status check_limits(const Program& program) {
  const auto fits = [](const std::string& name, const TensorType& type) -> Status {
    const int64_t most = kMostBytes / static_cast<int64_t>(dtype_size(type.dtype));
    if (num_elements(type.shape) <= most) return {};
    return unsupported("native: {} has more than {} bytes", name, kMostBytes);
  };
  if (program.stages.size() > kMostStages)
    return unsupported("native: a tensor program of {} stages", program.stages.size());
  for (const tensor_program::Buffer& buffer : program.buffers) TRY(fits(buffer.name, buffer.type));
  for (const Stage& stage : program.stages) {
    TRY(fits(stage.name, {stage.shape(), stage.dtype}));
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
      return unsupported("native: a tensor program of what is computed in the same kernel");
    }
  }
  TRY(check_limits(program));
  if (program.schedule.empty()) schedule_plainly(program);
  // No loop runs past an array's extent, where its stage would read past those of others.
  for (Primitive& step : program.schedule)
    if (step.kind == PrimitiveKind::kSplit || step.kind == PrimitiveKind::kVectorise)
      step.guarded = step.guarded || !ends_with_its_array(program, step);
  return std::optional<Program>(std::move(program));
}

}  // namespace collage::native
