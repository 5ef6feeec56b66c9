// Calls on constants, evaluated while importing: shapes computed by the graph become known this
// way, and what only feeds them never reaches the module. Large results are left as calls; the
// constant folding pass decides about those.
#pragma once

#include "base/result.h"
#include "ir/expr.h"

namespace collage::frontend {

class Folder {
 public:
  // `call` itself, or the constant (or tuple of constants) that it evaluates to.
  Result<Expr> fold(Expr call);

 private:
  size_t folded_bytes_ = 0;
  double folded_flops_ = 0;
};

}  // namespace collage::frontend
