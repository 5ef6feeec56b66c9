// The ten workloads as search problems, for tests that compare the search with its oracles.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "choose/costing.h"
#include "compiler/compile.h"
#include "search/problem.h"

namespace collage::testing {

inline constexpr const char* kWorkloads[] = {"bert",         "resnet50",    "resnext50", "nasnet_a",
                                             "dcgan",        "resnet50_3d", "nasrnn",    "gpt2",
                                             "mobilenet_v2", "yolov3"};

// Writes the model at reduced size into the folder, once; its path.
std::filesystem::path small_model(const std::string& name, const std::filesystem::path& folder);
// At its full size, likewise.
std::filesystem::path full_model(const std::string& name, const std::filesystem::path& folder);

// A model with the candidates that compiling it looks at.
class Workload {
 public:
  static Result<Workload> load(const std::filesystem::path& path);

  const DataflowGraph& graph() const { return *graph_; }
  // Takes the candidates.
  Result<std::vector<CostedCandidate>> costed(MeasuredCosts& costs);
  // The same with made-up costs of all variants that the backends offer, conversions included. It
  // lives as long as this object.
  Result<const SearchProblem*> mock();

 private:
  std::optional<Model> model_;
  std::unique_ptr<DataflowGraph> graph_;
  std::vector<CandidatePartition> candidates_;
  SearchProblem mock_;
};

}  // namespace collage::testing
