// Target: something that can compile kernels: a backend's name, options for it, and the device its
// kernels run on. Several targets may share a device. Text form: "onednn", "native
// -vector-width=8", "mylib -device=cpu".
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/encoding.h"

namespace collage {

struct Target {
  std::string kind;                            // the backend's name
  std::map<std::string, std::string> options;  // sorted, so that the text form is canonical
  VirtualDevice device;

  static Result<Target> parse(std::string_view text);
  std::string to_string() const;
  bool operator==(const Target&) const = default;
};

}  // namespace collage
