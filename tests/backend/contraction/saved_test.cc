// Kernels saved and loaded: check_variant (backend/check.h) holds what they give to the same bits;
// here, that none is refused, and that whatever a description says, the answer is a kernel or an
// error.
#include <limits>
#include <nlohmann/json.hpp>

#include "backend/contraction/check.h"
#include "runtime/saved_kernel.h"
#include "saved_layouts.h"

namespace collage::testing {
namespace {

using nlohmann::json;

constexpr int kThreads = 2;

struct SavedOffer {
  const Backend& backend;
  Target target;
  bool lowered;
};

// Of every variant that is offered for the function.
std::vector<SavedKernel> saved_kernels(const Function& function) {
  const CompileOptions options{kThreads, ""};
  const SavedOffer offers[] = {{amx_backend(), {"amx", {}, {}}, false},
                               {amx_backend(), {"amx", {{"parts", "3"}}, {}}, false}};
  std::vector<SavedKernel> all;
  for (const auto& [backend, target, lowered] : offers) {
    const auto variants = variants_of(backend, function, target, options, lowered);
    EXPECT_TRUE(variants.ok()) << variants.status().to_string();
    if (!variants.ok()) continue;
    for (const Variant& variant : *variants) {
      auto kernel = backend.compile(function, variant, target, options);
      EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
      if (!kernel.ok()) continue;
      Result<SavedKernel> saved = (*kernel)->save();
      EXPECT_TRUE(saved.ok()) << variant.to_string() << ": " << saved.status().to_string();
      if (!saved.ok()) continue;
      saved->buffers = buffers_of(function, variant);
      all.push_back(*saved);
    }
  }
  return all;
}

Status load(SavedKernel saved, const json& description) {
  saved.description = description.dump();
  const KernelLoader* loader = find_kernel_loader(saved.loader);
  if (loader == nullptr) return internal_error("no loader {}", saved.loader);
  return loader->load(saved, kThreads).status();
}

// Long lists are all alike behind their first numbers.
bool is_worth_changing(const std::string& pointer) {
  const size_t last = pointer.find_last_of('/');
  const std::string name = pointer.substr(last + 1);
  return name.size() < 2 || name.find_first_not_of("0123456789") != std::string::npos;
}

// Each buffer is used to its end, and none is taken that is a byte shorter.
void check_buffers(const SavedKernel& saved, const json& description) {
  for (auto sizes : {&BufferSizes::inputs, &BufferSizes::outputs})
    for (size_t i = 0; i < (saved.buffers.*sizes).size(); ++i) {
      SavedKernel shorter = saved;
      --(shorter.buffers.*sizes)[i];
      EXPECT_FALSE(load(shorter, description).ok()) << "buffer " << i;
    }
}

void check_damaged(const SavedKernel& saved) {
  SCOPED_TRACE(saved.loader);
  const json description = json::parse(saved.description);
  EXPECT_EQ(load(saved, description).to_string(), "ok");
  check_buffers(saved, description);
  int refused = 0;
  const json wrong[] = {
      -1,      0,   3,   int64_t{1} << 40, std::numeric_limits<int64_t>::max(), true,
      nullptr, 2.5, "x", json::array()};
  const json flat = description.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    if (!is_worth_changing(pointer)) continue;
    for (const json& other : wrong) {
      json changed = description;
      changed[json::json_pointer(pointer)] = other;
      const Status status = load(saved, changed);
      EXPECT_TRUE(status.ok() || !status.message().empty());
      refused += status.ok() ? 0 : 1;
    }
  }
  EXPECT_GE(refused, 100);
  for (const auto& [name, value] : description.items()) {
    json changed = description;
    changed.erase(name);
    if (name == "addend" || name == "mask") continue;  // may be missing
    EXPECT_FALSE(load(saved, changed).ok()) << "without " << name;
  }
  if (saved.constants.empty()) return;
  SavedKernel shorter = saved;
  shorter.constants[0].bytes -= 64;
  EXPECT_FALSE(load(shorter, description).ok());
  shorter.constants.clear();
  EXPECT_FALSE(load(shorter, description).ok());
}

// How weights are packed, for each way in which they are cut into parts.
void check_packing(const SavedKernel& saved, const std::string& part) {
  const json schedule = json::parse(saved.description).value("schedule", json());
  if (saved.constants.empty() || !schedule.is_object()) return;
  std::string cut;
  for (const char* name : {"left", "right"}) cut += "_" + schedule.at(name).dump();
  SavedLayouts::all().expect_known_packing(saved, part + cut);
}

void check_all(const Function& function, size_t least) {
  const std::vector<SavedKernel> all = saved_kernels(function);
  EXPECT_GE(all.size(), least);
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  for (const SavedKernel& saved : all) {
    check_damaged(saved);
    check_packing(saved, test);
  }
}

TEST(SavedKernels, OfProducts) {
  Graph graph;
  const Expr y = graph.call("nn.dense", {graph.input({40, 64}), graph.constant({48, 64}, 0.1)});
  check_all(graph.function(graph.call("nn.gelu", {graph.call("add", {y, graph.constant({48})})})),
            2);
}

// A residual flows in.
TEST(SavedKernels, OfConvolutions) {
  Graph graph;
  const Expr y = conv(graph, {{1, 32, 8, 8}, 32, {3, 3}, {1, 1}, {1, 1, 1, 1}});
  check_all(
      graph.function(graph.call("nn.relu", {graph.call("add", {y, graph.input({1, 32, 8, 8})})})),
      2);
}

TEST(SavedKernels, OfTransposedConvolutions) {
  Graph graph;
  check_all(
      graph.function(transposed_conv(graph, {{{1, 32, 5, 5}, 16, {4, 4}, {2, 2}, {1, 1, 1, 1}}})),
      2);
}

TEST(SavedKernels, OfSumsOfTwoConvolutions) {
  Graph graph;
  const Expr a = conv(graph, {{1, 32, 6, 6}, 48, {1, 1}}),
             b = conv(graph, {{1, 64, 6, 6}, 48, {1, 1}});
  check_all(graph.function(graph.call("add", {a, b})), 2);
}

TEST(SavedKernels, OfAttention) {
  for (const bool masked : {false, true}) {
    Graph graph;
    std::vector<Expr> operands = {graph.input({1, 2, 40, 32}), graph.input({1, 2, 40, 32}),
                                  graph.input({1, 2, 40, 16})};
    if (masked) operands.push_back(graph.constant({1, 1, 40, 40}));
    check_all(
        graph.function(graph.call("nn.attention", operands, {{"scale", 0.2}, {"causal", !masked}})),
        2);
  }
}

}  // namespace
}  // namespace collage::testing
