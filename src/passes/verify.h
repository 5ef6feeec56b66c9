// The verifier: is a module legal? A table of rules, one line each, that hold between any two
// passes. Its errors are kInternal: an illegal module is a bug of the pass that made it.
#pragma once

#include "base/result.h"
#include "ir/module.h"

namespace collage {

Status verify(const Module& module);

}  // namespace collage
