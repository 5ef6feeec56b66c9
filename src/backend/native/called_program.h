// Calls of tensor programs as kernels. A call alone is its program as it stands, with the schedule
// it brings or, where it brings none, a plain one. With other operators, or other such calls, it is
// emitted as one program of all their stages (tensor_program/emit/emit.h), which the schedules of
// stage_schedule.h are for; so is a call alone that brings no schedule, and for a schedule search
// what operators without a template compute. Every index of what users wrote is proven to stay
// inside its array, in what is emitted anew, and no loop runs past one.
#pragma once

#include <optional>

#include "ir/expr.h"
#include "tensor_program/emit/emitter.h"
#include "tensor_program/program.h"

namespace collage::native {

/// The program of a function that is one such call, its buffers bound to the function's parameters
/// and constants; none where the function is something else.
Result<std::optional<tensor_program::Program>> called_program(const Function& flat);

/// Whether some call of the function is of a tensor program.
bool calls_program(const Function& flat);

/// The stages of all that a function computes, without a schedule; over collapsed dimensions
/// (collapse.h) where it calls no program. `layouts`: as EmitForm's.
Result<tensor_program::Program> emitted_stages(
    const Function& flat, std::vector<tensor_program::ChannelLayout> layouts = {});

/// Whether offsets into all its arrays fit the 32 bits that compiled code has for them.
Status check_array_sizes(const tensor_program::Program& program);

/// With guards where a loop may run past an array's extent, where its stage would read past those
/// of others. Stages that are computed first are computed whole, so that a loop over one may end
/// where it does, like those over results.
tensor_program::Program guarded_loops(tensor_program::Program program);

/// The text of the program of a function that is one such call, with the schedule of a variant.
Result<std::string> scheduled_program(const Function& flat, const std::string& variant,
                                      int threads);

}  // namespace collage::native
