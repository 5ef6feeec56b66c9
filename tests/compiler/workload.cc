#include "compiler/workload.h"

#include <cstdlib>
#include <limits>
#include <map>

#include "backend/targets/backends.h"
#include "backend/targets/targets.h"
#include "ir/text_printer.h"
#include "ir/visitor.h"
#include "test_paths.h"

namespace collage::testing {

namespace {

constexpr int kWorkloadThreads = 2;

// Between 0 and 1, the same for equal texts.
double draw(const std::string& text) {
  uint64_t hash = 1469598103934665603u;  // FNV-1a: the same on every machine
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccdu;
  hash ^= hash >> 33;
  return static_cast<double>(hash >> 11) / static_cast<double>(uint64_t{1} << 53);
}

double mock_seconds(const Function& function, const std::string& text, const std::string& target,
                    const Variant& variant) {
  double speed = 0.5 + draw(text + target) + 0.3 * draw(text + target + variant.to_string());
  double plain = 0;
  for (const Encoding& encoding : variant.inputs) plain += encoding.is_plain();
  speed *= 1 + plain / static_cast<double>(variant.inputs.size() + 1);
  return 1e-6 + speed * (function_flops(function) / 5e10 + function_bytes(function) / 2e10);
}

double mock_conversion(const TensorType& type, const Encoding& from, const Encoding& to) {
  if (from.dtype != to.dtype) return std::numeric_limits<double>::infinity();
  return 0.1e-6 + static_cast<double>(type.bytes()) / 2e10 *
                      (0.5 + draw(type.to_string() + from.to_string() + ">" + to.to_string()));
}

// What models/generate.py makes of the arguments; an empty path where it fails.
std::filesystem::path generated(const std::string& arguments, const std::string& name,
                                const std::filesystem::path& folder) {
  const std::string command = std::string(COLLAGE_PYTHON) + " -B " + COLLAGE_TESTS_DIR +
                              "/../models/generate.py " + arguments + " -o " + folder.string() +
                              " > /dev/null";
  const std::filesystem::path path = folder / (name + ".onnx");
  return std::system(command.c_str()) == 0 ? path : std::filesystem::path();
}

}  // namespace

std::filesystem::path small_model(const std::string& name, const std::filesystem::path& folder) {
  return generated("--small " + name, name, folder);
}

std::filesystem::path full_model(const std::string& name, const std::filesystem::path& folder) {
  return generated(name, name, folder);
}

Result<Workload> Workload::load(const std::filesystem::path& path) {
  register_all();
  Workload workload;
  workload.model_ = TRY(load_model(path, {}));
  std::vector<PartitionSpecPtr> specs = TRY(select_targets({}, {}));
  const Module& module = workload.model_->impl().module;
  workload.graph_ = std::make_unique<DataflowGraph>(untangle_tuples(module.main()));
  workload.candidates_ = TRY(checked_candidates(*workload.graph_, specs));
  return workload;
}

Result<std::vector<CostedCandidate>> Workload::costed(MeasuredCosts& costs) {
  return cost_candidates(*graph_, std::move(candidates_), costs, nullptr);
}

Result<const SearchProblem*> Workload::mock() {
  mock_.graph = graph_.get();
  mock_.launch_penalty = 0.1e-6;
  mock_.conversion_cost = mock_conversion;
  CompileOptions options;
  options.threads = kWorkloadThreads;
  std::map<std::string, std::vector<VariantCost>> known;  // by function and target
  for (const CandidatePartition& candidate : candidates_) {
    Function function = TRY(inline_calls(candidate.sub_graph.extract(*graph_)));
    const Target& target = candidate.spec->target;
    std::string text = canonical_text(function);
    auto [it, inserted] = known.try_emplace(target.to_string() + text);
    if (inserted) {
      Result<std::vector<Variant>> variants =
          find_backend(target.kind)->variants(function, target, options);
      if (variants)  // refusing is ordinary
        for (const Variant& variant : *variants)
          it->second.push_back({variant, mock_seconds(function, text, target.kind, variant) *
                                             (candidate.spec->is_host ? 10 : 1)});
    }
    mock_.candidates.push_back({&candidate, it->second});
  }
  return &mock_;
}

}  // namespace collage::testing
