// Tensors that a program keeps from run to run, as a decoder its keys and values: each lies in a
// buffer of a bucket's size, and a run's increment is written behind the current content.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "artifact/bucketing/padding.h"
#include "base/result.h"

namespace collage {

using TensorsByName = std::map<std::string, Tensor>;

struct StateInfo {
  TensorInfo input, added;  // what is kept, and what a run adds
  size_t axis = 0;          // that grows
  std::string dim;          // its name
};

class States {
 public:
  States() = default;
  // Makes empty states. `padding`: filler of a buffer's unused part, by the input's name; else 0.
  States(std::vector<StateInfo> infos, std::map<std::string, double> padding);

  // The sizes of what is kept: the dimensions that grow.
  DimSizes sizes() const { return sizes_; }
  // Adds the buffers to a run's tensors, in the sizes of `padded`; enlarges them if needed.
  Status add_to(TensorsByName& tensors, const DimSizes& sizes, const DimSizes& padded);
  // Appends the last results of a run, one a state in order.
  Status append(const std::vector<Tensor>& added, const DimSizes& sizes, const DimSizes& padded);
  void reset();

 private:
  std::vector<StateInfo> infos_;
  std::vector<Tensor> buffers_;  // of each; undefined before its first run
  DimSizes sizes_;
  std::map<std::string, double> padding_;
};

}  // namespace collage
