// The ONNX test suite on each backend of this build, the host besides.
#include <gtest/gtest.h>

#include "backend/backend.h"
#include "backend/targets/backends.h"
#include "conformance/backend_check.h"

namespace collage {
namespace {

std::vector<std::string> names_of_backends() {
  register_all();
  std::vector<std::string> names;
  for (Backend* backend : all_backends()) names.push_back(backend->name());
  return names;
}

class EachBackend : public ::testing::TestWithParam<std::string> {};

TEST_P(EachBackend, DoesWhatTheInterpreterDoes) {
  const Backend& backend = *find_backend(GetParam());
  if (const Status available = backend.available(); !available.ok())
    GTEST_SKIP() << GetParam() << ": " << available.message();
  check_suite_on(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Suite, EachBackend, ::testing::ValuesIn(names_of_backends()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace collage
