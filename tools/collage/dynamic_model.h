// Models whose shapes are not known before they run (collage/dynamic.h), in sub-commands.
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

// A program that runs in stages, with its inputs.
struct StagedProgram {
  Program program;
  TensorsByName tensors;
  std::unique_ptr<ProgressLine> progress;

  std::vector<Tensor> inputs() const;
  std::vector<TensorInfo> input_infos() const;
};

// Opens a model, which could not be loaded because of `failure`, to run in stages. Only the
// importer of its first stage can tell whether that works; if not, `failure` is returned.
Result<StagedProgram> in_stages(const SharedOptions& options, const Status& failure);
// Opens an artifact that holds such a program; none if the file holds another, or is a model's.
Result<std::optional<StagedProgram>> staged_artifact(const SharedOptions& options);
// Checks alone whether it can run in stages.
Status runs_in_stages(const SharedOptions& options, const Status& failure);

// Reads the inputs that --inputs gives, by name; kUsage: `infos` do not have one of them.
Result<TensorsByName> given_inputs(const std::vector<TensorInfo>& infos,
                                   const SharedOptions& options);
// Returns the outputs' names with their actual shapes.
std::vector<TensorInfo> infos_of(const std::vector<TensorInfo>& declared,
                                 const std::vector<Tensor>& outputs);

// Runs it on its inputs, and saves what was compiled.
Status compile_staged(StagedProgram& staged, const SharedOptions& options,
                      const std::string& output, const std::string& signing_key);
Status run_staged(StagedProgram& staged, const SharedOptions& options);
// Compares with the expected outputs, or with the reference interpreter.
Status verify_staged(StagedProgram& staged, const SharedOptions& options,
                     const Expectation& expectation);

}  // namespace collage::tool
