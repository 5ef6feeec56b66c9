// Target: something that can compile kernels: a backend's name, options for it, and the device its
// kernels run on. Several targets may share a device, and several of one backend may differ in
// options or device: a target is known by its whole text. Text form: "onednn", "native
// -vector-width=8", "mylib -device=gpu:1 -memory_scope=shared". The option rules is the rest of a
// text, blanks included: "native -rules=union(own(), is_op('exp'))". The option cores states which
// cores a CPU device beside cpu:0 is: "native -device=cpu:1 -cores=2-3".
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/cores.h"
#include "runtime/encoding.h"

namespace collage {

struct Target {
  std::string kind;                            // the backend's name
  std::map<std::string, std::string> options;  // sorted, so that the text form is canonical
  VirtualDevice device;

  static Result<Target> parse(std::string_view text);
  std::string to_string() const;
  // Returns those of the option cores; none where the program's own threads compute.
  Cores cores() const;
  auto operator<=>(const Target&) const = default;
};

// A target name of a user, and whether it means a target: "native" means all targets of that
// backend; a name with options or a device means only targets that have them.
class TargetName {
 public:
  static Result<TargetName> parse(std::string_view text);
  const std::string& kind() const { return stated_.kind; }
  std::string text() const { return stated_.to_string(); }
  bool means(const Target& target) const;
  // Returns the name that means what both mean: with the options and the device of either. None:
  // there is no such target.
  static std::optional<TargetName> join(const TargetName& a, const TargetName& b);

 private:
  Target stated_;
  bool device_ = false, memory_scope_ = false;  // whether they are stated
};

}  // namespace collage
