// Observes a compilation, which measures for minutes if costs are unknown, and ends it early.
#pragma once

#include <collage/collage.h>

#include <cstddef>
#include <functional>
#include <string_view>

namespace collage {

// Called when `done` of `total` pieces of a phase are finished, of which `failed` gave nothing
// usable and `cached` needed no work. Called from the compiling thread, never while something is
// timed in this process; it must not throw.
using ProgressFunction = std::function<void(std::string_view phase, size_t done, size_t total,
                                            size_t cached, size_t failed)>;

// Calls Program::compile and reports its progress.
Result<Program> compile_with_progress(const Model& model, const ProgramOptions& options,
                                      const ProgressFunction& progress);

// While it is set, every compilation of this process ends soon: it stops measuring, keeps what was
// measured, and returns the best program known by then. May be called from any thread and from
// signal handlers.
void set_interrupted(bool interrupted);

}  // namespace collage
