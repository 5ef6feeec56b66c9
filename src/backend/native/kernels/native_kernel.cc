#include "backend/native/kernels/native_kernel.h"

#include <map>
#include <mutex>

#include "backend/native/kernels/kernel_object.h"
#include "backend/native/kernels/loaders.h"
#include "backend/native/kernels/runtime_hooks.h"
#include "base/hash.h"
#include "runtime/index_check.h"
#include "runtime/saved_fields.h"

namespace collage::native {
namespace {

using nlohmann::json;

constexpr char kLoader[] = "native";

/// An input that is read as indices.
Status check_argument(const KernelArgument& argument, const void* data) {
  const int64_t count = num_elements(argument.extents);
  return argument.type.bits == 64
             ? check_indices(static_cast<const int64_t*>(data), count, {argument.indexed})
             : check_indices(static_cast<const int32_t*>(data), count, {argument.indexed});
}

}  // namespace

NativeKernel::NativeKernel(std::shared_ptr<const Code> code, std::vector<KernelArgument> arguments,
                           bool calls_library, std::vector<Update> updates)
    : code_(std::move(code)),
      arguments_(std::move(arguments)),
      calls_library_(calls_library),
      updates_(std::move(updates)),
      descriptors_(arguments_) {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const SharedBytes& constant = arguments_[i].constant;
    descriptors_.buffer(i).host = static_cast<uint8_t*>(const_cast<void*>(constant.data.get()));
    constant_bytes_ += constant.bytes;
  }
}

Status NativeKernel::run(const KernelArgs& args) {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const KernelArgument& argument = arguments_[i];
    if (argument.indexed > 0) TRY(check_argument(argument, args.inputs[argument.input]));
    if (argument.input >= 0)
      descriptors_.buffer(i).host = static_cast<uint8_t*>(args.inputs[argument.input]);
    if (argument.output >= 0)
      descriptors_.buffer(i).host = static_cast<uint8_t*>(args.outputs[argument.output]);
  }
  const uint64_t failures = scratch_failures();
  const int code = code_->call(descriptors_.pointers());
  if (scratch_failures() != failures)
    return error(ErrorCode::kUnavailable,
                 "native: out of memory for what a kernel keeps while it runs");
  if (code != 0)
    return internal_error("native: a kernel failed with code {}: {}", code, take_kernel_error());
  return {};
}

Result<std::shared_ptr<Kernel>> NativeKernel::twin() const {
  return std::shared_ptr<Kernel>(
      std::make_shared<NativeKernel>(code_, arguments_, calls_library_, updates_));
}

Result<SavedKernel> NativeKernel::save() const {
  if (calls_library_)
    return unsupported(
        "native: a kernel that calls another library, or an intrinsic of the user's");
  SavedKernel saved;
  saved.loader = kLoader;
  saved.objects.push_back(code_->library());
  saved.description = arguments_to_json(arguments_, code_->library(), saved.constants).dump();
  return saved;
}

Result<KernelSource> NativeKernel::source() const {
  if (calls_library_)
    return unsupported(
        "native: a kernel that calls another library, or an intrinsic of the user's");
  KernelSource source;
  source.object = TRY(kernel_object(code_->library()));
  source.entry = kEntry;
  std::string pointers;
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const KernelArgument& argument = arguments_[i];
    if (argument.number) {
      source.body += fmt::format("  int32_t b{} = {};\n", i, *argument.number);
      pointers += fmt::format("{}&b{}", i == 0 ? "" : ", ", i);
      continue;
    }
    std::string dims;
    for (const halide_dimension_t& dim : descriptors_.dims(i))
      dims += fmt::format("{{0, {}, {}, 0}}, ", dim.extent, dim.stride);
    std::string host;
    if (argument.input >= 0) host = fmt::format("in[{}]", argument.input);
    if (argument.output >= 0) host = fmt::format("out[{}]", argument.output);
    if (host.empty()) {
      host = fmt::format("constant[{}]", source.constants.size());
      source.constants.push_back(argument.constant);
    }
    if (argument.indexed > 0)
      source.body += fmt::format(
          "  for (int64_t e = 0; e < {0}; ++e) {{\n    const int64_t index = ((const int{1}_t*)"
          "{2})[e];\n    if (index < -{3} || index >= {3}) return index_is_out(index, {3});\n  "
          "}}\n",
          num_elements(argument.extents), argument.type.bits, host, argument.indexed);
    // An array has one element at least: in C none is empty.
    source.body += fmt::format(
        "  struct dimension d{0}[] = {{{1}{{0, 0, 0, 0}}}};\n"
        "  struct buffer b{0} = {{0, 0, (uint8_t*){2}, 0, {3}, {4}, 1, {5}, d{0}, 0}};\n",
        i, dims, host, static_cast<int>(argument.type.code), argument.type.bits,
        argument.extents.size());
    pointers += fmt::format("{}&b{}", i == 0 ? "" : ", ", i);
  }
  source.body +=
      fmt::format("  void* arguments[] = {{{}}};\n  return code(arguments);\n", pointers);
  return source;
}

namespace {

/// Of what compiled code asks of the process: a library's table holds exactly these hooks. And of
/// the description's form.
std::string version() {
  std::string names;
  for (const Hook& hook : runtime_hooks()) names += hook.name + "\n";
  return "halide-21/" + sha256_hex(names).substr(0, 8) + "/3";
}

Result<std::shared_ptr<Kernel>> load(const SavedKernel& saved, int) {
  const json description = TRY(description_object(saved.description));
  std::vector<KernelArgument> arguments = TRY(arguments_from_json(description, saved));
  return std::shared_ptr<Kernel>(
      std::make_shared<NativeKernel>(TRY(shared_code(saved.objects[0])), std::move(arguments)));
}

}  // namespace

void register_loaders() { register_kernel_loader({kLoader, version(), load}); }

}  // namespace collage::native
