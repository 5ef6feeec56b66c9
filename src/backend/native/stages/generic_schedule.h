// Building and scheduling what has no template: a result that is a term over stages. Both become
// part of the emitter's program; translate.h compiles it.
#pragma once

#include <string>

#include "backend/native/codegen/access.h"
#include "backend/native/kernel_group.h"
#include "tensor_program/emit/emitter.h"

namespace collage::native {

/// Adds stage `name` and its schedule: the result in that layout; `row_stages` are placed in its
/// row loop.
void add_result(tensor_program::Emitter& emitter, const KernelGroup& group, const Expr& result,
                const std::string& name, ChannelLayout layout, int threads);

/// Stages that are not part of a row loop are computed before everything that reads them.
void schedule_stages_first(tensor_program::Emitter& emitter);

}  // namespace collage::native
