#include "backend/opencl/kernels/opencl_kernel.h"

#include "backend/opencl/kernels/clblast_kernel.h"
#include "backend/opencl/kernels/loaders.h"
#include "backend/opencl/kernels/memory.h"
#include "backend/opencl/kernels/runtime_hooks.h"
#include "base/hash.h"
#include "runtime/saved_fields.h"

namespace collage::opencl {
namespace {

using nlohmann::json;

constexpr char kOpenclLoader[] = "opencl";

}  // namespace

Result<std::unique_ptr<OpenClKernel>> OpenClKernel::make(std::shared_ptr<const native::Code> code,
                                                         std::vector<KernelArgument> arguments,
                                                         int device) {
  auto shared = std::make_shared<Shared>();
  shared->code = std::move(code);
  shared->number = device;
  shared->device = TRY(Device::open(device));
  Memory& memory = shared->device->memory();
  for (const KernelArgument& argument : arguments) {
    std::shared_ptr<void>& constant = shared->constants.emplace_back();
    if (argument.constant.data == nullptr) continue;
    constant = TRY(memory.allocate(argument.constant.bytes));
    TRY(memory.write(constant.get(), argument.constant.data.get(), argument.constant.bytes));
    shared->constant_bytes += argument.constant.bytes;
  }
  shared->arguments = std::move(arguments);
  return std::unique_ptr<OpenClKernel>(new OpenClKernel(std::move(shared)));
}

OpenClKernel::OpenClKernel(std::shared_ptr<const Shared> shared)
    : shared_(std::move(shared)), launcher_(*shared_->device), descriptors_(shared_->arguments) {
  for (size_t i = 0; i < shared_->arguments.size(); ++i)
    descriptors_.buffer(i).device = reinterpret_cast<uint64_t>(shared_->constants[i].get());
}

Status OpenClKernel::run(const KernelArgs& args) {
  for (size_t i = 0; i < shared_->arguments.size(); ++i) {
    const KernelArgument& argument = shared_->arguments[i];
    halide_buffer_t& buffer = descriptors_.buffer(i);
    if (argument.input >= 0)
      buffer.device = reinterpret_cast<uint64_t>(args.inputs[argument.input]);
    if (argument.output >= 0)
      buffer.device = reinterpret_cast<uint64_t>(args.outputs[argument.output]);
  }
  int code = 0;
  TRY(launcher_.run([&] { code = shared_->code->call(descriptors_.pointers()); }));
  if (code != 0)
    return internal_error("opencl: a kernel failed with code {}: {}", code,
                          native::take_kernel_error());
  return shared_->device->flush();
}

Result<std::shared_ptr<Kernel>> OpenClKernel::twin() const {
  return std::shared_ptr<Kernel>(new OpenClKernel(shared_));
}

Result<SavedKernel> OpenClKernel::save() const {
  SavedKernel saved;
  saved.loader = kOpenclLoader;
  saved.objects.push_back(shared_->code->library());
  json description =
      native::arguments_to_json(shared_->arguments, shared_->code->library(), saved.constants);
  description["device"] = shared_->number;
  saved.description = description.dump();
  return saved;
}

namespace {

/// Of what host code asks of the process: a library's table holds exactly these hooks. And of the
/// description's form.
std::string version() {
  std::string names;
  for (const native::Hook& hook : runtime_hooks()) names += hook.name + "\n";
  return "halide-21/" + sha256_hex(names).substr(0, 8) + "/2";
}

Result<std::shared_ptr<Kernel>> load(const SavedKernel& saved, int) {
  const json description = TRY(description_object(saved.description));
  const JsonFields fields(description);
  const auto device = static_cast<int>(TRY(fields.integer("device", 0, kMostDevices - 1)));
  std::vector<KernelArgument> arguments =
      TRY(native::arguments_from_json(description, saved, VirtualDevice{kDeviceKind, device, ""}));
  std::shared_ptr<const native::Code> code =
      TRY(native::shared_code(saved.objects[0], runtime_hooks()));
  return std::shared_ptr<Kernel>(
      TRY(OpenClKernel::make(std::move(code), std::move(arguments), device)));
}

}  // namespace

void register_loaders() {
  register_kernel_loader({kOpenclLoader, version(), load});
  register_kernel_loader(clblast_loader());
  for (int id = 0; id < kMostDevices; ++id)
    register_device_memory({kDeviceKind, id, ""}, memory_of_device(id));
}

}  // namespace collage::opencl
