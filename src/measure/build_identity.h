// The build of a process, as far as measurements depend on it: compiler and worker are two
// programs, and a worker of other sources would measure other kernels, store them under wrong keys,
// or misread its tasks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace collage {

// Returns the identity of this process, once its backends are registered: the version, the build of
// all that measures and judges (the protocol of compiler and worker too), and every backend's
// version.
nlohmann::json build_identity();

// Returns how another process's identity differs from this one's, in words: "version 0.2.0, not
// 0.1.0"; empty if they can work together. It may have backends that this one lacks.
std::string identity_difference(const nlohmann::json& other);

}  // namespace collage
