#include "dynamic/symbolic_source.h"

#include <utility>
#include <vector>

#include "compiler/model_stages.h"
#include "frontend/script/symbolic_module.h"
#include "passes/inline_functions.h"
#include "tensor_program/module_programs.h"

namespace collage {

namespace {

using frontend::ImportedStage;
using tensor_program::SymbolicModule;
using tensor_program::SymbolicTensor;

class SymbolicSource : public frontend::StageSource {
 public:
  explicit SymbolicSource(SymbolicModule module) : module_(std::move(module)) {
    for (const SymbolicTensor& param : module_.params())
      inputs_.push_back({param.name, param.dtype, param.dims()});
    size_t count = 0;
    for (const SymbolicTensor& result : module_.results()) {
      outputs_.push_back({fmt::format("output{}", count++), result.dtype, result.dims()});
      whole_.outputs.push_back(outputs_.back().name);
    }
  }

  Result<ImportedStage> import(const frontend::RemainingGraph&,
                               const frontend::TensorsByName& tensors) override {
    std::vector<Shape> shapes;
    ImportedStage stage;
    for (const ModelInput& input : inputs_) {
      shapes.push_back(tensors.at(input.name).shape());
      stage.inputs.push_back(input.name);
      stage.reads.insert(input.name);
    }
    const tensor_program::Symbols values = TRY(module_.bind(shapes));
    Module module = TRY(module_.instantiate(values));
    TRY(inline_functions(module));
    TRY(tensor_program::link_programs(module));
    stage.module = std::move(module);
    stage.outputs = whole_.outputs;
    return stage;
  }

 private:
  SymbolicModule module_;
};

}  // namespace

Result<std::shared_ptr<frontend::StageSource>> open_symbolic(const std::filesystem::path& path) {
  SymbolicModule module = TRY(SymbolicModule::load(path));
  if (module.symbols().empty()) TRY(module.instantiate({}).with_context(path.string()));
  return std::shared_ptr<frontend::StageSource>(
      std::make_shared<SymbolicSource>(std::move(module)));
}

}  // namespace collage
