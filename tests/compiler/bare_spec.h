// A target without a rule, for problems whose candidates a test writes down.
#pragma once

#include <memory>
#include <string>

#include "partition/candidate.h"

namespace collage::testing {

inline PartitionSpecPtr bare_spec(const std::string& kind, bool is_host = false) {
  auto made = std::make_shared<PartitionSpec>();
  made->name = made->target.kind = kind;
  made->is_host = is_host;
  return made;
}

}  // namespace collage::testing
