// Small ONNX models of the kinds that are compiled: of each a few operators that occur together.
#pragma once

#include <string>
#include <vector>

namespace collage::fuzz {

// Serialised.
std::vector<std::string> small_networks();

}  // namespace collage::fuzz
