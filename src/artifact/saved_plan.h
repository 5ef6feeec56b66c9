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

struct LoadedPlan {
  std::shared_ptr<const Plan> plan;
  // Of constants in their final form: the weights, and what kernels pack again for themselves.
  size_t packed_bytes = 0;
};

// The entry of that name.
using EntryReader = std::function<Result<SharedBytes>(const std::string& name)>;
// Whatever the entries hold: a plan whose buffers lie within its arena and its tensors, and whose
// kernels stay within their buffers; or an error.
Result<LoadedPlan> load_plan(const EntryReader& entry, int threads);

}  // namespace collage
