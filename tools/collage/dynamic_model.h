// Models whose shapes are not known before they run (collage/dynamic.h): what sub-commands do with
// them.
#pragma once

#include <collage/dynamic.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifact/bucketing/states.h"
#include "expectation.h"
#include "options.h"
#include "progress_line.h"

namespace collage::tool {

// A program that runs in stages, with what it is run on.
struct StagedProgram {
  DynamicProgram program;
  TensorsByName tensors;
  std::unique_ptr<ProgressLine> progress;

  std::vector<Tensor> inputs() const;
  std::vector<TensorInfo> input_infos() const;
};

// A model that could not be loaded for this reason, to be run in stages. Whether it can be, nobody
// but the importer of its first stage decides; where it cannot, `failure` is what comes back.
Result<StagedProgram> in_stages(const SharedOptions& options, const Status& failure);
// Of an artifact that holds such a program; none where the file holds another, or is a model's.
Result<std::optional<StagedProgram>> staged_artifact(const SharedOptions& options);
// Whether it can be, by itself.
Status runs_in_stages(const SharedOptions& options, const Status& failure);

// Inputs by name that --inputs gives; kUsage for one that `infos` do not have.
Result<TensorsByName> given_inputs(const std::vector<DynamicTensorInfo>& infos,
                                   const SharedOptions& options);
// The outputs' names with the shapes that they came in.
std::vector<TensorInfo> infos_of(const std::vector<DynamicTensorInfo>& declared,
                                 const std::vector<Tensor>& outputs);

// Runs it on its inputs, and saves what was compiled.
Status compile_staged(StagedProgram& staged, const SharedOptions& options,
                      const std::string& output, const std::string& signing_key);
Status run_staged(StagedProgram& staged, const SharedOptions& options);
// Against what is expected, or the reference interpreter.
Status verify_staged(StagedProgram& staged, const SharedOptions& options,
                     const Expectation& expectation);

}  // namespace collage::tool
