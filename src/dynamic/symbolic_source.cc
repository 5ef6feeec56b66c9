#include "dynamic/symbolic_source.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/symbolic_model.h"
#include "passes/inline_functions.h"
#include "tensor_program/module_programs.h"

namespace collage {

namespace {

using frontend::ImportedStage;

class SymbolicSource : public frontend::StageSource {
 public:
  explicit SymbolicSource(SymbolicModel model) : model_(std::move(model)) {
    for (const TensorInfo& input : model_.inputs())
      inputs_.push_back({input.name, input.dtype, input.dims});
    for (const TensorInfo& output : model_.outputs()) {
      outputs_.push_back({output.name, output.dtype, output.dims});
      whole_.outputs.push_back(output.name);
    }
  }

  Result<ImportedStage> import(const frontend::RemainingGraph& rest,
                               const frontend::TensorsByName& tensors) override {
    std::vector<Shape> shapes;
    ImportedStage stage;
    for (const ModelInput& input : inputs_) {
      shapes.push_back(tensors.at(input.name).shape());
      stage.inputs.push_back(input.name);
      stage.reads.insert(input.name);
    }
    const tensor_program::SymbolicModule& family = model_.impl().module;
    Module module = TRY(family.instantiate(TRY(family.bind(shapes))));
    TRY(inline_functions(module));
    TRY(tensor_program::link_programs(module));
    if (!rest.increments.empty()) TRY(add_increments(module, rest));
    stage.module = std::move(module);
    stage.outputs = rest.outputs;
    return stage;
  }

 private:
  // Replaces the results by those that are asked for.
  Status add_increments(Module& module, const frontend::RemainingGraph& rest) const {
    const Function& main = module.main();
    const auto result = [&](const std::string& name) -> Result<Expr> {
      const auto at = std::find(whole_.outputs.begin(), whole_.outputs.end(), name);
      if (whole_.outputs.size() == 1) return main->body;
      return make_tuple_get_item(main->body, at - whole_.outputs.begin());
    };
    std::vector<Expr> results;
    for (const std::string& name : rest.outputs) {
      const auto increment =
          std::find_if(rest.increments.begin(), rest.increments.end(),
                       [&](const frontend::Increment& one) { return one.name() == name; });
      if (increment == rest.increments.end()) {
        results.push_back(TRY(result(name)));
        continue;
      }
      const auto input = std::find_if(
          main->params.begin(), main->params.end(),
          [&](const Expr& param) { return as<VarNode>(param)->name == increment->input; });
      const Expr whole = TRY(result(increment->output));
      const size_t axis = increment->axis;
      results.push_back(TRY(make_call("strided_slice", {whole},
                                      {{"begin", Ints{(*input)->tensor_type().shape[axis]}},
                                       {"end", Ints{whole->tensor_type().shape[axis]}},
                                       {"axes", Ints{static_cast<int64_t>(axis)}}})));
    }
    Expr body = results.size() == 1 ? results[0] : make_tuple(std::move(results));
    module.functions["main"] = make_function(main->params, std::move(body), main->attrs);
    return {};
  }

  const SymbolicModel model_;
};

}  // namespace

std::shared_ptr<frontend::StageSource> symbolic_source(const SymbolicModel& model) {
  return std::make_shared<SymbolicSource>(model);
}

}  // namespace collage
