// Which steps of a plan wait for which. Steps whose kernels run on cores of their own (CoreKernel)
// are computed beside others, in the host's memory: those of one team in the plan's order, all
// others when what they share memory with is done.
#pragma once

#include <vector>

#include "runtime/plan.h"

namespace collage {

// Returns, for each step, earlier steps on other cores that have to be done before it begins: that
// write what it reads or writes, or read what it writes, or have effects as it has. Of those of one
// team the last one alone.
std::vector<std::vector<size_t>> awaited_steps(const Plan& plan);

}  // namespace collage
