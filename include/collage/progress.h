// Watching a compilation, which measures for minutes where costs are new, and ending it early.
#pragma once

#include <collage/collage.h>

#include <cstddef>
#include <functional>
#include <string_view>

namespace collage {

// Hears that `done` of `total` pieces of a phase are finished; `failed` of them gave nothing
// usable, `cached` needed no work. Called from the compiling thread, never while something is timed
// in this process; it must not throw.
using ProgressFunction = std::function<void(std::string_view phase, size_t done, size_t total,
                                            size_t cached, size_t failed)>;

// Program::compile that tells how far it is.
Result<Program> compile_with_progress(const Model& model, const ProgramOptions& options,
                                      const ProgressFunction& progress);

// While it is set, every compilation of this process ends soon: it measures no more, keeps what was
// measured, and gives the best program that it knows by then. Any thread, signal handlers included.
void set_interrupted(bool interrupted);

}  // namespace collage
