// A run of a graph of one stage, to be repeated with other tensors of the same types: names are
// looked up once, so that an iteration of a loop costs what its program costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artifact/bucketing/tensor_conditions.h"
#include "dynamic/stage_program.h"

namespace collage {

struct RepeatedInputs {
  std::vector<std::string> names;  // of what each run is given, in order
  std::vector<TensorType> types;
  TensorsByName kept;            // what all runs read
  TensorsByName constants = {};  // the graph's, before what is given; copied where they are results
};

class RepeatedRun {
 public:
  // `outputs`: the graph's. None where a value that a run is given decided what was imported.
  static std::optional<RepeatedRun> of(const RepeatedInputs& inputs,
                                       const TensorConditions& conditions,
                                       const frontend::ImportedStage& stage,
                                       const std::vector<std::string>& outputs,
                                       StageProgram* program, SpecialisationInfo* info);

  bool serves(const std::vector<Tensor>& given) const;
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& given);

 private:
  struct Source {
    enum class Kind { kGiven, kComputed, kKept, kConstant } kind;
    size_t position = 0;  // among what is given, or what the program computes
    Tensor tensor = {};
    const Tensor& in(const std::vector<Tensor>& given, const std::vector<Tensor>& computed) const;
  };

  std::vector<TensorType> types_;
  std::vector<Source> inputs_, outputs_;  // of the program, of the graph
  StageProgram* program_ = nullptr;       // null: nothing is computed
  SpecialisationInfo* info_ = nullptr;
};

}  // namespace collage
