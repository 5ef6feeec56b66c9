// A compiled program, the artifact it was saved as, and what both give.
#pragma once

#include <filesystem>
#include <string>

#include "collage/program.h"
#include "compiler/compile.h"

namespace collage::testing {

// Compiles with that toolchain alone, saves, loads, and runs so many contexts on threads of their
// own, each that often: "" where every run gives the program's bits, and contexts take little
// memory beside their arenas.
std::string run_saved(const Model& model, const ProgramOptions& options,
                      const std::filesystem::path& file, int contexts, int runs);

// Of so many damaged copies of the file, how many are taken by `verify`, or refused without words:
// 0.
int accepted_damages(const std::filesystem::path& file, uint32_t count);

}  // namespace collage::testing
