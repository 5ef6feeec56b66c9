// Every case of every operator that a plugin's backend takes, in every variant, against the
// interpreter: of the plugin and backend that COLLAGE_TEST_PLUGIN names ("libmine.so mine").
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "backend/check.h"
#include "backend/targets/backends.h"
#include "backend/targets/plugins.h"
#include "ops/cases.h"

namespace collage {
namespace {

TEST(PluginOperators, MatchTheReference) {
  const char* named = std::getenv("COLLAGE_TEST_PLUGIN");
  if (named == nullptr) GTEST_SKIP() << "COLLAGE_TEST_PLUGIN names no plugin";
  std::istringstream words(named);
  std::string library, name;
  words >> library >> name;
  const Status loaded = load_plugin(library);
  ASSERT_TRUE(loaded.ok()) << loaded.to_string();
  const Backend* backend = find_backend(name);
  ASSERT_NE(backend, nullptr) << name;
  ASSERT_TRUE(backend->available().ok()) << backend->available().to_string();

  const Target target{name, {}, {}};
  size_t cases = 0;
  std::set<std::string> taken;
  for (const OpCase& op_case : op_cases()) {
    Result<OpCaseFunction> built = build_case(op_case, 1);
    ASSERT_TRUE(built.ok()) << built.status().to_string();
    CompileOptions options;
    options.threads = 2;
    if (!backend->variants(built->function, target, options).ok()) continue;
    SCOPED_TRACE(op_case.to_string());
    testing::check_variants(*backend, target, built->function, built->inputs);
    taken.insert(op_case.op);
    ++cases;
  }
  EXPECT_FALSE(taken.empty());
  std::cout << cases << " cases of";
  for (const std::string& op : taken) std::cout << " " << op;
  std::cout << "\n";
}

}  // namespace
}  // namespace collage
