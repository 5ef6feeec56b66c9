// A module over symbols that a run counts, run part by part (frontend/script/parts.h), each part
// compiled for the sizes that come.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "artifact/specialisations.h"
#include "dynamic/stage_program.h"
#include "frontend/script/parts.h"

namespace collage {

class PartsGraph {
 public:
  PartsGraph(StageContext& context, std::shared_ptr<const tensor_program::ModuleParts> parts)
      : context_(context), parts_(std::move(parts)), made_(parts_->parts().size()) {}

  // Returns the module's results from its inputs.
  Result<std::vector<Tensor>> run(TensorsByName tensors);
  // Returns what was compiled so far, to be saved. kUsage: nothing was.
  Result<std::vector<CompiledForShapes>> compiled() const;
  const std::shared_ptr<const tensor_program::ModuleParts>& parts() const { return parts_; }

 private:
  struct Specialisation {
    std::unique_ptr<StageProgram> program;
    std::unique_ptr<ListedInfo> listed;
    size_t last_run = 0;
  };
  Result<Specialisation> make(size_t part, const tensor_program::Symbols& values,
                              const std::vector<Tensor>& inputs, bool many_runs);
  Result<std::vector<Tensor>> compute(size_t part, const tensor_program::Symbols& values,
                                      const std::vector<Tensor>& inputs);

  StageContext& context_;
  const std::shared_ptr<const tensor_program::ModuleParts> parts_;
  std::vector<std::map<std::string, Specialisation>> made_;  // of each part, by its key
  uint64_t runs_ = 0;                                        // that were begun
};

}  // namespace collage
