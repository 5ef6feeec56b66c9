// Tensors that a program keeps from run to run, as a decoder its keys and values: each lies in a
// buffer of a bucket's size, and what a run adds is written behind what is there.
#pragma once

#include <collage/dynamic.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "dynamic/padding.h"
#include "frontend/onnx/stages.h"

namespace collage {

class States {
 public:
  // Takes the states out of `inputs` and `outputs`, which then are the caller's, and makes `graph`
  // give what a run adds in place of the whole. kUsage where an input or output does not exist or
  // its dimensions do not say what grows.
  static Result<States> take(const DynamicOptions& options, std::vector<DynamicTensorInfo>& inputs,
                             std::vector<DynamicTensorInfo>& outputs,
                             frontend::RemainingGraph& graph);

  bool empty() const { return states_.empty(); }
  // How much is kept: the dimensions that grow, with their sizes.
  DimSizes sizes() const { return sizes_; }
  // Adds the buffers to a run's tensors, in the sizes of `padded`; they grow where they must.
  Status add_to(frontend::TensorsByName& tensors, const DimSizes& sizes, const DimSizes& padded);
  // Appends the last results of a run, one a state in order.
  Status append(const std::vector<Tensor>& added, const DimSizes& sizes, const DimSizes& padded);
  size_t size() const { return states_.size(); }
  void reset();

 private:
  struct State {
    DynamicTensorInfo input, added;  // what is kept, and what a run adds
    size_t axis = 0;                 // that grows
    std::string dim;                 // its name
    Tensor buffer;
  };
  std::vector<State> states_;
  DimSizes sizes_;
  std::map<std::string, double> padding_;
};

}  // namespace collage
