// The part of a plan's arithmetic that runs on the host, the fallback backend, whose kernels are
// simple and slow. Operators count only if no other target has a kernel for them.
#pragma once

#include <map>
#include <string>

#include "compiler/compile.h"

namespace collage {

struct HostShare {
  std::string host;
  double share = 0;                         // of the arithmetic, from 0 to 1
  std::map<std::string, size_t> operators;  // that run there
  bool alone = false;                       // no other target was to be used: it was asked for

  std::string operators_text() const;  // "nn.lrn, scan (3)"
};

HostShare host_share(const CompileReport& report);

}  // namespace collage
