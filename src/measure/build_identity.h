// Which build a process is, as far as measurements depend on it: compiler and worker are two
// programs, and one that was built from other sources would measure other kernels than those that
// the compiler asks for, store them under the wrong keys, or misread what it is told.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace collage {

// Of this process, once its backends are registered: the version, the build of all that measures
// and judges (what compiler and worker say to one another too), and every backend's version.
nlohmann::json build_identity();

// How another process's identity differs from this one's, in words: "version 0.2.0, not 0.1.0";
// empty where they can work together. It may have backends that this one lacks.
std::string identity_difference(const nlohmann::json& other);

}  // namespace collage
