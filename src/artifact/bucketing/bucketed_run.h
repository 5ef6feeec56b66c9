// A run of a program whose inputs have named dimensions: tensors are padded to buckets, states are
// added to them, results are cut back. What computes on the padded tensors is the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "artifact/bucketing/padding.h"
#include "artifact/bucketing/states.h"
#include "base/result.h"

namespace collage {

// What such a program takes and gives; see DynamicOptions (collage/dynamic.h).
struct BucketedInterface {
  std::vector<DynamicTensorInfo> inputs, outputs;  // the caller's
  std::vector<StateInfo> states;                   // inputs and outputs that the program keeps
  std::map<std::string, std::vector<int64_t>> buckets;
  std::map<std::string, double> padding;
};

// From all inputs, states among them, to the outputs and after them what is added to each state.
using ComputePadded = std::function<Result<std::vector<Tensor>>(const TensorsByName& inputs)>;

// kBadModel for inputs that do not fit the interface, or each other. `states` keep what the run
// adds if `keeps`; none does where it fails.
Result<std::vector<Tensor>> run_bucketed(const BucketedInterface& interface, States& states,
                                         const std::vector<Tensor>& inputs,
                                         const ComputePadded& compute, bool keeps = true);

}  // namespace collage
