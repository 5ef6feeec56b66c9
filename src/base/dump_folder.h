// Where intermediate states are written for people who look for a fault: COLLAGE_DUMP=dir[:regex],
// the folder and which names to write; nothing where it is not set.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/regex.h"
#include "base/result.h"

namespace collage {

class DumpFolder {
 public:
  // `request`: "dir" or "dir:regex"; empty: that of the environment. Makes the folder. kUsage: it
  // cannot be made, or the expression is none.
  static Result<DumpFolder> open(const std::string& request = "");

  bool wants(const std::string& name) const {
    return !folder_.empty() && (!filter_ || filter_->found_in(name));
  }
  std::filesystem::path path(const std::string& file) const { return folder_ / file; }

 private:
  std::filesystem::path folder_;
  std::optional<Regex> filter_;
};

}  // namespace collage
