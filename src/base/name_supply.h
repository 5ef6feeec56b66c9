// Fresh names: the first request for "conv" gives "conv", the next "conv_1", then "conv_2".
// Characters outside [A-Za-z0-9_] become '_', so that a name is safe as a symbol and as a file
// name.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace collage {

class NameSupply {
 public:
  std::string fresh(std::string_view wanted);
  void reserve(const std::string& name) { used_.insert(name); }

 private:
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, int> next_;
};

}  // namespace collage
