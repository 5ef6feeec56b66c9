// A backend that has words of tensor programs for its schedules: a variant of a call of a program
// becomes a program that brings that schedule.
#pragma once

#include <string>

#include "ir/expr.h"

namespace collage {

class ProgramScheduler {
 public:
  virtual ~ProgramScheduler() = default;
  // Returns the text of a program that computes what `function`, one call of a tensor program,
  // does, with the same parameters and results, and the schedule of the variant of that name.
  virtual Result<std::string> scheduled_program(const Function& function,
                                                const std::string& variant, int threads) const = 0;
};

}  // namespace collage
