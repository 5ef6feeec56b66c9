// What compiled code is called with: inputs, outputs, constants and numbers; and how they are
// saved.
#pragma once

#include <HalideRuntime.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/result.h"
#include "runtime/saved_kernel.h"

namespace collage::native {

/// An argument of the code: an input, an output or a constant, dense; or a number, a symbol's
/// value.
struct KernelArgument {
  std::vector<int64_t> extents;  ///< innermost first
  halide_type_t type;
  int input = -1, output = -1;
  SharedBytes constant;
  std::optional<int32_t> number = {};
  /// The input's elements are indices into so many, from -indexed on, which is checked before the
  /// code runs; 0: they are none.
  int64_t indexed = 0;
};

/// Arguments as the code takes them; where they lie is for the owner to fill in.
class ArgumentDescriptors {
 public:
  explicit ArgumentDescriptors(const std::vector<KernelArgument>& arguments);
  ArgumentDescriptors(const ArgumentDescriptors&) = delete;
  ArgumentDescriptors& operator=(const ArgumentDescriptors&) = delete;

  halide_buffer_t& buffer(size_t argument) { return list_[argument].buffer; }
  const std::vector<halide_dimension_t>& dims(size_t argument) const {
    return list_[argument].dims;
  }
  /// One halide_buffer_t* an argument, or an int32_t* of a number.
  void** pointers() { return pointers_.data(); }

 private:
  struct Descriptor {
    halide_buffer_t buffer{};  // refers to `dims`
    std::vector<halide_dimension_t> dims;
    int32_t number = 0;
  };
  std::vector<Descriptor> list_;
  std::vector<void*> pointers_;
};

/// Returns the description of a kernel of that library: {"arguments": …, "digest": …}. Adds the
/// constants to `constants` in order. The code does not check what it is called with, so the digest
/// ties the arguments to the library.
nlohmann::json arguments_to_json(const std::vector<KernelArgument>& arguments,
                                 const SharedBytes& library, std::vector<SharedBytes>& constants);
/// Fails where the arguments are not those of the one object of `saved`, or do not fit the buffers,
/// which lie on `device`, or the constants of `saved`.
Result<std::vector<KernelArgument>> arguments_from_json(const nlohmann::json& description,
                                                        const SavedKernel& saved,
                                                        const VirtualDevice& device = {});

}  // namespace collage::native
