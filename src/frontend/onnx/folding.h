// Evaluates calls on constants while importing, so that shapes computed by the graph become known
// and their computation never reaches the module. Large results stay calls; the constant folding
// pass decides about them.
#pragma once

#include "base/result.h"
#include "ir/expr.h"

namespace collage::frontend {

class Folder {
 public:
  // Returns `call` itself, or the constant (or tuple of constants) that it evaluates to.
  Result<Expr> fold(Expr call);

 private:
  size_t folded_bytes_ = 0;
  double folded_flops_ = 0;
};

}  // namespace collage::frontend
