// Control flow as a kernel (ops/control.h), and the call of a program that was compiled before:
// runs the plans of its functions inside the run of the plan around it. Nothing is allocated or
// copied but the last states, and rows that are not aligned: states alternate between two places of
// the workspace, and a body reads rows and writes them where they lie.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/plan.h"

namespace collage {

struct ControlSpec {
  enum class Kind { kIf, kLoop, kCall } kind = Kind::kIf;
  // Of a loop, as in ops/control.h.
  size_t states = 0, scanned = 0;
  int64_t rows = -1;
  // Where no user runs it: most iterations of a loop whose end depends on values.
  int64_t most_checked = 0;
  // The operator's operands less its functions, of a call the plan's inputs: a constant, or an
  // input of the kernel.
  struct Operand {
    Tensor constant;
    size_t input = 0;
  };
  std::vector<Operand> operands;
};

// `plans`: of both branches, of the body, or what is called; compiled for that many threads.
// kBadModel: they do not fit the operands.
Result<std::shared_ptr<Kernel>> make_control_kernel(ControlSpec spec,
                                                    std::vector<std::shared_ptr<const Plan>> plans,
                                                    int threads);

void register_control_loader();

}  // namespace collage
