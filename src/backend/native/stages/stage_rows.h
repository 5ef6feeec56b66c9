// Which stages of a program need, for some rows of the result, the same rows alone: a task can
// compute them together, from what is in its core's cache.
#pragma once

#include <map>
#include <string>

#include "tensor_program/stage_plan.h"

namespace collage::native {

/// The result of a program that has one; else null.
const tensor_program::Stage* result_of(const tensor_program::Program& program);

/// Stages whose first `depth` axes are the result's, as far as their readers are such stages and
/// read them there: true. False: some reader reads beside that row, at a fixed distance, as
/// stencils do; for a block of rows a few more are computed around it. No sum is among those.
std::map<std::string, bool> aligned_stages(const tensor_program::StagePlan& plan, size_t depth);

/// Of how many axes of the result its rows are: of as many as all sums are aligned at. 0: none.
size_t depth_of_rows(const tensor_program::StagePlan& plan);

}  // namespace collage::native
