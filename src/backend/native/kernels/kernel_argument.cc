#include "backend/native/kernels/kernel_argument.h"

#include "base/hash.h"
#include "runtime/saved_fields.h"

namespace collage::native {

using nlohmann::json;

namespace {

constexpr size_t kMostDims = 16;

std::string digest_of(const json& list, const SharedBytes& library) {
  Sha256 hash;
  hash.update(library.data.get(), library.bytes);
  const std::string text = list.dump();
  hash.update(text.data(), text.size());
  return hash.hex();
}

}  // namespace

ArgumentDescriptors::ArgumentDescriptors(const std::vector<KernelArgument>& arguments)
    : list_(arguments.size()) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const KernelArgument& argument = arguments[i];
    Descriptor& descriptor = list_[i];
    if (argument.number) {
      descriptor.number = *argument.number;
      pointers_.push_back(&descriptor.number);
      continue;
    }
    int64_t stride = 1;
    for (int64_t extent : argument.extents) {
      descriptor.dims.emplace_back(0, static_cast<int32_t>(extent), static_cast<int32_t>(stride));
      stride *= extent;
    }
    descriptor.buffer.type = argument.type;
    descriptor.buffer.dimensions = static_cast<int32_t>(argument.extents.size());
    descriptor.buffer.dim = descriptor.dims.data();
    pointers_.push_back(&descriptor.buffer);
  }
}

json arguments_to_json(const std::vector<KernelArgument>& arguments, const SharedBytes& library,
                       std::vector<SharedBytes>& constants) {
  json list = json::array();
  for (const KernelArgument& argument : arguments) {
    if (argument.number) {
      list.push_back({{"number", *argument.number}});
      continue;
    }
    json entry = {{"extents", argument.extents},
                  {"code", static_cast<int>(argument.type.code)},
                  {"bits", argument.type.bits}};
    if (argument.input >= 0) entry["input"] = argument.input;
    if (argument.output >= 0) entry["output"] = argument.output;
    if (argument.indexed > 0) entry["indexed"] = argument.indexed;
    if (argument.constant.data != nullptr) constants.push_back(argument.constant);
    list.push_back(std::move(entry));
  }
  std::string digest = digest_of(list, library);
  return {{"arguments", std::move(list)}, {"digest", std::move(digest)}};
}

Result<std::vector<KernelArgument>> arguments_from_json(const json& description,
                                                        const SavedKernel& saved,
                                                        const VirtualDevice& device) {
  if (saved.objects.size() != 1)
    return bad_model("native: a kernel of {} objects", saved.objects.size());
  const JsonFields all(description);
  const json& list = *TRY(all.array("arguments"));
  if (TRY(all.text("digest")) != digest_of(list, saved.objects[0]))
    return bad_model("native: a kernel's arguments are not those of its code");
  std::vector<KernelArgument> arguments;
  size_t next = 0;
  for (const json& entry : list) {
    const JsonFields fields(entry);
    KernelArgument& argument = arguments.emplace_back();
    if (fields.has("number")) {
      argument.number = static_cast<int32_t>(TRY(fields.integer("number", 0, INT32_MAX)));
      continue;
    }
    argument.extents = TRY(integers_from(fields, "extents", 0, INT32_MAX, kMostDims));
    argument.type = halide_type_t(
        static_cast<halide_type_code_t>(TRY(fields.integer("code", 0, halide_type_bfloat))),
        static_cast<uint8_t>(TRY(fields.integer("bits", 1, 64))));
    argument.input = static_cast<int>(TRY(fields.integer("input", 0, 1 << 20, -1)));
    argument.output = static_cast<int>(TRY(fields.integer("output", 0, 1 << 20, -1)));
    argument.indexed = TRY(fields.integer("indexed", 0, INT32_MAX, 0));
    const size_t bytes =
        TRY(bytes_from(argument.extents, static_cast<size_t>(argument.type.bytes())));
    if (argument.input >= 0)
      TRY(saved.buffers.input_holds(static_cast<size_t>(argument.input), bytes, device));
    if (argument.output >= 0)
      TRY(saved.buffers.output_holds(static_cast<size_t>(argument.output), bytes, device));
    if (argument.input >= 0 || argument.output >= 0) continue;
    if (next == saved.constants.size()) return bad_model("native: a constant is not there");
    argument.constant = saved.constants[next++];
    if (argument.constant.bytes < bytes)
      return bad_model("native: a constant of {} bytes is too short", argument.constant.bytes);
  }
  return arguments;
}

}  // namespace collage::native
