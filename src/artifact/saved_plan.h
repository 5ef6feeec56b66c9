// A plan as JSON, with what its kernels and constants are made of beside it: constants one after
// the other in one block, each on a multiple of 64 bytes, and objects, each an entry of its own.
// Equal ones are there once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "artifact/zip.h"
#include "runtime/plan.h"

namespace collage {

struct SavedPlan {
  std::vector<ZipEntry> entries;
  std::map<std::string, std::string> loaders;  // that its kernels need, with their versions
};

// Of kernels compiled for so many threads. An error names the step and says why its kernel cannot
// be saved.
Result<SavedPlan> save_plan(const Plan& plan, int threads);

// The entry of that name.
using EntryReader = std::function<Result<SharedBytes>(const std::string& name)>;
// Whatever the entries hold: a plan whose buffers lie within its arena and its tensors, or an
// error.
Result<std::shared_ptr<const Plan>> load_plan(const EntryReader& entry, int threads);

}  // namespace collage
