// The reference for a program's outputs: what the model itself computes, operator by operator in
// its own types, and the tolerance. A float32 or quantised model is compared with its simplified
// form; one that holds float16 or bfloat16 with the imported form, within the rounding of every
// tensor to these types, since its program computes in float32 (that program met float32's
// tolerance when it was chosen: verify/reference_check.h). Each element may additionally be off by
// what roundings move it by (verify/reference_check.h); in a quantised model, by what neighbours of
// its integers change.
#pragma once

#include <string>

#include "compiler/compile.h"
#include "verify/comparison.h"

namespace collage {

struct ModelReference {
  Function function;
  Tolerance tolerance;
  Tolerance of_peers;  // of what another runtime computes, where only its outputs are known
  std::string
      bound;  // the tolerance: "|a-b| <= 0.01 s, as the model rounds to …", s as in comparison.h
};

// `max_error` as in ProgramOptions.
ModelReference model_reference(const Model& model, double max_error);

}  // namespace collage
