// Other references for `verify`: outputs in files, or those of another runtime on the same file and
// inputs, whose importer shares no code with ours.
#pragma once

#include <string>
#include <vector>

#include "options.h"

namespace collage::tool {

struct Expected {
  std::string by;  // who says so
  std::vector<Tensor> outputs;
};

struct Expectation {
  std::string folder;   // --expect
  std::string runtime;  // --compare

  bool is_given() const { return !folder.empty() || !runtime.empty(); }
  // `infos` and `inputs` are those of the program. kUnavailable: Python or the runtime is missing,
  // or refuses the model.
  Result<Expected> outputs(const SharedOptions& options, std::vector<TensorInfo> infos,
                           std::vector<Tensor> inputs, size_t count) const;
};

}  // namespace collage::tool
