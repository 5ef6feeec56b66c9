// A plan of kernels that every process has, and what it gives: relu(x) * w, converted to blocks of
// channels and back, and a copy of x.
#pragma once

#include <memory>

#include "artifact/saved_plan.h"
#include "runtime/plan.h"

namespace collage::testing {

std::shared_ptr<Plan> tiny_plan();
SavedPlans saved_tiny_plan();  // as the entry kPlanEntry
Tensor tiny_input(int seed);
// What the plan gives for it, run here.
std::vector<Tensor> run_plan(std::shared_ptr<const Plan> plan, const Tensor& input);
std::string bytes_of(const std::vector<Tensor>& tensors);

}  // namespace collage::testing
