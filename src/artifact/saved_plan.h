// Plans as JSON, each an entry. Constants of their kernels lie one after the other in one block,
// each on a multiple of 64 bytes; objects are entries of their own. Equal constants and objects of
// all plans are stored once.
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
  // `threads`: the number that the kernels were compiled for.
  explicit PlanSaver(int threads) : threads_(threads) {}

  // Adds a plan as the entry of that name. An error names the step and says why its kernel cannot
  // be saved.
  Status add(const std::string& entry, const Plan& plan);
  // Returns the constant's place in the block: offset and bytes.
  std::pair<size_t, size_t> add_constant(const SharedBytes& constant);
  std::pair<size_t, size_t> add_constant(const Tensor& tensor);
  void add_text(const std::string& entry, std::string text);
  // Ends the block; nothing may be added afterwards.
  Result<SavedPlans> finish();

 private:
  nlohmann::json save_buffer(const Buffer& buffer);
  Result<nlohmann::json> save_step(const Step& step);
  Result<nlohmann::json> description_of(const Plan& plan);
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
  // Bytes of constants in their final form: the weights, and what kernels pack again for
  // themselves.
  size_t packed_bytes = 0;
};

// Returns the entry of that name.
using EntryReader = std::function<Result<SharedBytes>(const std::string& name)>;
// Loads the plan of entry `name`. For any content of the entries, the result is a plan whose
// buffers lie within its arena and its tensors, and whose kernels stay within their buffers; or an
// error.
Result<LoadedPlan> load_plan(const EntryReader& entry, const std::string& name, int threads);

// Returns the constant at a place in the block `weights`, as `add_constant` returned it.
Result<SharedBytes> constant_from(const JsonFields& fields, const char* name,
                                  const SharedBytes& weights);

}  // namespace collage
