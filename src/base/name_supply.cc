#include "base/name_supply.h"

#include <cctype>

namespace collage {

std::string NameSupply::fresh(std::string_view wanted) {
  std::string base;
  for (char c : wanted) base += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0]))) base.insert(0, "_");
  std::string name = base;
  while (!used_.insert(name).second) name = base + "_" + std::to_string(++next_[base]);
  return name;
}

}  // namespace collage
