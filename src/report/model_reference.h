// What the user may hold a program's outputs to: what the model itself computes, operator by
// operator in its own types, and how far from that they may be. A float32 model is held to its
// simplified form; one that holds float16 or bfloat16 to the form that was imported, within what
// rounding every tensor to these types makes, since its program computes in float32 (such a program
// was held to float32's tolerance before, when it was chosen: verify/reference_check.h); a
// quantised one to its simplified form. Besides, each element may be off by what roundings move it
// by (verify/reference_check.h): of a quantised model by what neighbours of its integers make of
// it.
#pragma once

#include <string>

#include "compiler/compile.h"
#include "verify/comparison.h"

namespace collage {

struct ModelReference {
  Function function;
  Tolerance tolerance;
  Tolerance of_peers;  // of what another runtime computes, where only its outputs are known
  std::string bound;   // the tolerance: "|a-b| <= 0.01 s, as the model rounds to …", s as in comparison.h
};

// `max_error` as in ProgramOptions.
ModelReference model_reference(const Model& model, double max_error);

}  // namespace collage
