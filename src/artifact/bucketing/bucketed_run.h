// Runs a program whose inputs have named dimensions: pads tensors to buckets, adds states to them,
// cuts results back. The caller computes on the padded tensors.
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

// Inputs and outputs of such a program; see DynamicOptions (collage/dynamic.h).
struct BucketedInterface {
  std::vector<TensorInfo> inputs, outputs;  // the caller's
  std::vector<StateInfo> states;            // inputs and outputs that the program keeps
  std::map<std::string, std::vector<int64_t>> buckets;
  std::map<std::string, double> padding;
};

// Computes, from all inputs (states included), the outputs and then each state's increment.
using ComputePadded = std::function<Result<std::vector<Tensor>>(const TensorsByName& inputs)>;

// Writes the outputs into tensors of the caller, of their types, which may overlap no input and no
// other output; makes those that are not defined. kBadModel: inputs or outputs do not fit the
// interface, or each other. `states` keep the run's increments if `keeps` and if it succeeds.
Status run_bucketed(const BucketedInterface& interface, States& states,
                    const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                    const ComputePadded& compute, bool keeps = true);

}  // namespace collage
