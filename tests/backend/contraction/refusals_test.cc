// Reasons for which a contraction is refused.
#include <gmock/gmock.h>

#include "backend/contraction/check.h"

namespace collage::testing {
namespace {

using ::testing::StartsWith;

struct Refused {
  std::string reason;
  Function function;
};

std::vector<Refused> refused_functions() {
  std::vector<Refused> list;
  const auto add = [&](const char* reason, const auto& build) {
    Graph graph;
    const Expr result = build(graph);
    list.push_back({reason, graph.function(result)});
  };
  add("no convolution or product", [](Graph& g) {
    return g.call("nn.relu", {g.input({1, 32, 8, 8})});
  });
  add("nn.dense by weights that are computed", [](Graph& g) {
    return g.call("nn.dense", {g.input({16, 32}), g.input({32, 32})});
  });
  add("8 channels", [](Graph& g) { return conv(g, {{1, 8, 4, 4}, 32, {1, 1}}); });
  add("exp after nn.conv2d", [](Graph& g) {
    return g.call("exp", {conv(g, {{1, 32, 8, 8}, 32, {3, 3}})});
  });
  return list;
}

template <typename T>
std::string text_of(const Result<T>& refused) {
  return refused.ok() ? "not refused" : refused.status().to_string();
}

TEST(Refusals, NameTheBackend) {
  const Target amx{"amx", {}, {}};
  for (const auto& [reason, function] : refused_functions()) {
    SCOPED_TRACE(reason);
    EXPECT_EQ(text_of(amx_backend().variants(function, amx, {2, ""})), "amx: " + reason);
    EXPECT_EQ(text_of(amx_backend().variants(function, amx, {2, "", RoundingLimit::kAny})),
              "amx: " + reason);
    const Variant variant = Variant::plain("none", function);
    EXPECT_EQ(text_of(amx_backend().compile(function, variant, amx, {2, ""})), "amx: " + reason);
  }
}

TEST(Refusals, OfAnUnknownVariantNameTheBackend) {
  Graph graph;
  const Function function = graph.function(conv(graph, {{1, 32, 4, 4}, 32, {1, 1}}));
  const Variant variant = Variant::plain("none", function);
  EXPECT_THAT(text_of(amx_backend().compile(function, variant, {"amx", {}, {}}, {2, ""})),
              StartsWith("amx: no variant none"));
}

}  // namespace
}  // namespace collage::testing
