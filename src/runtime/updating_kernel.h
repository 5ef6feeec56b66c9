// UpdatingKernel: a kernel that makes a result of an input by changing some of it. It copies the
// input first if the result lies elsewhere; if they lie in one place it overwrites the input, which
// the memory planner allows only if nothing reads the input afterwards.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/kernel.h"

namespace collage {

class UpdatingKernel : public Kernel {
 public:
  // An update of one size, in one encoding.
  struct Update {
    size_t input = 0, output = 0;
  };
  virtual std::vector<Update> updates() const = 0;
};

}  // namespace collage
