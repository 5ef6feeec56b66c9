// The steps of lowering a kernel as text, for people who look for a fault. COLLAGE_DUMP=dir:regex
// writes each step whose name, as `kernel_scheduled`, the expression matches. Without an expression
// nothing is written: a compilation lowers hundreds of kernels.
#pragma once

#include <functional>

#include "backend/variant.h"
#include "base/dump_folder.h"

namespace collage::native {

class KernelDump {
 public:
  KernelDump() = default;
  /// Of a kernel that `function`, in text, and the variant tell apart from others.
  static Result<KernelDump> open(const Variant& variant, const std::string& function);
  /// Writes dir/kernel_<variant>_<digest>_<number>_<step>.txt where it is asked for.
  Status write(std::string_view step, const std::function<Result<std::string>()>& text);

 private:
  DumpFolder folder_;
  std::string prefix_;
  int steps_ = 0;
};

}  // namespace collage::native
