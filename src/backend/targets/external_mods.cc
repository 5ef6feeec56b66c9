#include "backend/targets/external_mods.h"

#include <algorithm>
#include <span>

#include "artifact/load_artifact.h"
#include "base/printable.h"
#include "ir/visitor.h"
#include "runtime/executor.h"

namespace collage {

namespace {

using Types = std::vector<TensorType>;

std::string types_text(const Types& types) {
  std::string text;
  for (const TensorType& type : types) text += (text.empty() ? "" : ", ") + type.to_string();
  return "(" + text + ")";
}

Status check_types(const std::vector<PlanSignature>& has, const Types& wanted, const char* does) {
  Types types;
  for (const PlanSignature& one : has) types.push_back(one.type);
  if (types == wanted) return {};
  return bad_model("it {} {}, not {}", does, types_text(types), types_text(wanted));
}

Result<std::shared_ptr<const Plan>> load_code(const Tensor& code, const Types& params,
                                              const Types& results, int threads) {
  const auto owner = std::make_shared<const Tensor>(code);
  const auto file = TRY(ArtifactFile::from_memory(owner->raw(), owner->bytes(), owner));
  TRY(file->check_hashes());  // text is less to be trusted than files of artifacts
  file->use_threads(threads);
  const std::shared_ptr<const Plan> plan = TRY(load_artifact(file)).plan;
  TRY(check_types(plan->inputs, params, "takes"));
  TRY(check_types(plan->outputs, results, "gives"));
  return plan;
}

Types types_of(std::span<const Tensor> tensors) {
  Types types;
  for (const Tensor& tensor : tensors) types.push_back({tensor.shape(), tensor.dtype()});
  return types;
}

Status run_code(const Tensor& code, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  const int threads = ThreadTeam().size();
  auto plan = TRY(load_code(code, types_of(inputs), types_of(outputs), threads));
  return TRY(Executor::create(std::move(plan), threads)).run(inputs, outputs);
}

}  // namespace

Result<std::shared_ptr<const Plan>> load_external_mod(const tensor_program::ExternalModCall& call,
                                                      int threads) {
  Types params;
  for (const Expr& arg : call.args) params.push_back(arg->tensor_type());
  return load_code(as<ConstantNode>(call.mod.code)->value, params, call.result.leaves(), threads)
      .with_context("external module " + printable(call.symbol));
}

Status check_external_mods(const Function& function, int threads) {
  for (const Expr& expr : post_order(function->body))
    if (const auto* call = as<CallNode>(expr))
      if (const auto mod = tensor_program::external_mod_call(*call))
        TRY(load_external_mod(*mod, threads).status());
  return {};
}

void register_external_mods() { tensor_program::set_external_mod_runner(run_code); }

}  // namespace collage
