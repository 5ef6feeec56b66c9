// The folder that COLLAGE_DUMP=dir[:regex] names for intermediate states, and which names are
// written there; nothing is written if it is not set.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/regex.h"
#include "base/result.h"

namespace collage {

class DumpFolder {
 public:
  // `request`: "dir" or "dir:regex"; empty: the environment's. Makes the folder. kUsage: the folder
  // cannot be made, or the expression is malformed.
  static Result<DumpFolder> open(const std::string& request = "");

  bool wants(const std::string& name) const {
    return !folder_.empty() && (!filter_ || filter_->found_in(name));
  }
  // Whether an expression says which names are wanted.
  bool has_filter() const { return filter_.has_value(); }
  std::filesystem::path path(const std::string& file) const { return folder_ / file; }

 private:
  std::filesystem::path folder_;
  std::optional<Regex> filter_;
};

}  // namespace collage
