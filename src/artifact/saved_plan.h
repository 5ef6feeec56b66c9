// Plans as JSON, each an entry, with what their kernels and constants are made of beside them:
// constants one after the other in one block, each on a multiple of 64 bytes, and objects, each an
// entry of its own. Equal ones are there once, of whatever plans.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "artifact/zip.h"
#include "base/json_fields.h"
#include "runtime/plan.h"

namespace collage {

struct SavedPlans {
  std::vector<ZipEntry> entries;
  std::map<std::string, std::string> loaders;  // that kernels need, with their versions
};

class PlanSaver {
 public:
  // Of kernels compiled for so many threads.
  explicit PlanSaver(int threads) : threads_(threads) {}

  // As the entry of that name. An error names the step and says why its kernel cannot be saved.
  Status add(const std::string& entry, const Plan& plan);
  // Where it lies in the block: offset and bytes.
  std::pair<size_t, size_t> add_constant(const SharedBytes& constant);
  std::pair<size_t, size_t> add_constant(const Tensor& tensor);
  void add_text(const std::string& entry, std::string text);
  // Nothing is added any more.
  Result<SavedPlans> finish();

 private:
  nlohmann::json save_buffer(const Buffer& buffer);
  Result<nlohmann::json> save_step(const Step& step);
  Result<std::string> description_of(const Plan& plan);
  std::string add_object(const SharedBytes& object);

  const int threads_;
  SavedPlans result_;
  size_t weight_bytes_ = 0;
  std::map<std::string, size_t> constant_offsets_;          // by hash
  std::map<std::pair<const void*, size_t>, size_t> known_;  // by address and size
  std::vector<std::pair<size_t, SharedBytes>> constants_;   // with their offsets
  std::map<std::string, std::string> object_names_;         // by hash
  std::vector<std::pair<std::string, SharedBytes>> objects_;
};

struct LoadedPlan {
  std::shared_ptr<const Plan> plan;
  // Of constants in their final form: the weights, and what kernels pack again for themselves.
  size_t packed_bytes = 0;
};

// The entry of that name.
using EntryReader = std::function<Result<SharedBytes>(const std::string& name)>;
// Whatever the entries hold: a plan whose buffers lie within its arena and its tensors, and whose
// kernels stay within their buffers; or an error. `name` is the plan's entry.
Result<LoadedPlan> load_plan(const EntryReader& entry, const std::string& name, int threads);

// A constant's place in the block `weights`, as `add_constant` gave it.
Result<SharedBytes> constant_from(const JsonFields& fields, const char* name,
                                  const SharedBytes& weights);

}  // namespace collage
