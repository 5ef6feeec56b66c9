// Building and scheduling what has no template: a result that is an expression over stages.
#pragma once

#include "backend/native/emitter.h"
#include "backend/native/kernel_group.h"

namespace collage::native {

/// Elements of one vector register as kernels use them.
int vector_width();

/// The result as a scheduled output function in that layout; `row_stages` are then placed in its
/// row loop.
Halide::Func build_result(Emitter& emitter, const KernelGroup& group, const Expr& result,
                          ChannelLayout layout, int threads);

/// Stages that are not part of a row loop are computed before everything that reads them.
void schedule_stages_first(Emitter& emitter);

}  // namespace collage::native
