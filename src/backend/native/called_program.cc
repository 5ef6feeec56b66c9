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
  for (const Stage& stage : program.stages)
    if (!stage.external.label.empty() &&
        (stage.external.inputs.empty() || stage.external.inputs.size() > kMostExternalInputs))
      return unsupported("native: an external function of {} tensors",
                         stage.external.inputs.size());
  if (program.schedule.empty()) schedule_plainly(program);
  return std::optional<Program>(std::move(program));
}

}  // namespace collage::native
