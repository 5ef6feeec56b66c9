// The ONNX test suite through the whole pipeline (pipeline.h) with some targets. What passes in the
// interpreter passes there, but for what expectations_backends.txt lists; of what is in no excluded
// family (families.h) at least 96.5% pass; nothing crashes. With COLLAGE_CONFORMANCE_TABLE=FILE a row
// of a table is added there.
#pragma once

#include <string>

namespace collage {

inline constexpr const char* kDefault = "default";  // targets

// Fails the test where any of that does not hold. `target`: a backend's name, or kDefault.
void check_suite_on(const std::string& target);

}  // namespace collage
