// What the user may hold a program's outputs to: what the model itself computes, operator by
// operator in its own types, and how far from that they may be. A float32 model is held to its
// simplified form; one that holds float16 or bfloat16 to the form that was imported, within what
// rounding every tensor to these types makes, since its program computes in float32 (such a program
// was held to float32's tolerance before, when it was chosen: verify/reference_check.h); a
// quantised one to its simplified form, within what roundings to 8 bits make of one another.
#pragma once

#include <string>

#include "compiler/compile.h"
#include "verify/comparison.h"

namespace collage {

struct ModelReference {
  Function function;
  Tolerance tolerance;
  std::string bound;  // the tolerance in words: "|a-b| <= 0.01 max|b|, as the model rounds to …"
};

// `max_error` as in ProgramOptions.
ModelReference model_reference(const Model& model, double max_error);

}  // namespace collage
