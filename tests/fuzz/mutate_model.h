// Changes of ONNX models.
#pragma once

#include <string>

#include "fuzz/random.h"
#include "ir/module.h"

namespace collage::fuzz {

// The serialised model with a field or a few of its messages changed; seldom, bytes.
std::string with_other_fields(const std::string& model, Random& random);

// Of all values that a run of it makes, inputs that nothing reads among them.
double elements_of(const Module& module);

}  // namespace collage::fuzz
