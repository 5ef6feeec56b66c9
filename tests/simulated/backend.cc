// A simulated accelerator as a plugin: two devices, each with a small scope "scratch" besides its
// memory. Every operator is a kernel, which the reference computes. Set by the environment:
//
//   SIMULATED_MEMORY, SIMULATED_SCRATCH   bytes of each
//   SIMULATED_SPEED                       bytes a second of transfers
//   SIMULATED_FLOPS0, SIMULATED_FLOPS1    operations a second of the kernels of each device
#include <cstdlib>
#include <string>

#include "backend/plugin.h"
#include "backend/reference/kernels/interpreted_kernel.h"
#include "base/stopwatch.h"
#include "ir/visitor.h"
#include "ir/work.h"
#include "partition/rules/host.h"
#include "simulated/memory.h"

namespace collage::simulated {
namespace {

constexpr int kDevices = 2;
const std::string kKind = "simulated", kScratch = "scratch";

double setting(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtod(text, nullptr) : otherwise;
}

struct Device {
  double flops = 0;  // a second; 0: any
  std::shared_ptr<Queue> queue = std::make_shared<Queue>();
  std::map<std::string, std::shared_ptr<Memory>> scopes;
};

std::map<int, Device>& devices() {
  static auto* all = [] {
    auto* made = new std::map<int, Device>;
    for (int id = 0; id < kDevices; ++id) {
      Device& device = (*made)[id];
      device.flops = setting(("SIMULATED_FLOPS" + std::to_string(id)).c_str(), 0);
      const auto add = [&](const std::string& scope, const char* capacity, double otherwise) {
        const VirtualDevice place{kKind, id, scope};
        device.scopes[scope] = std::make_shared<Memory>(
            place, device.queue, static_cast<size_t>(setting(capacity, otherwise)),
            setting("SIMULATED_SPEED", 0));
        register_device_memory(place, device.scopes[scope]);
      };
      add("", "SIMULATED_MEMORY", 4e9);
      add(kScratch, "SIMULATED_SCRATCH", 1 << 16);
    }
    return made;
  }();
  return *all;
}

size_t bytes_of(const Encoding& encoding, const TensorType& type) {
  return encoding.layout.physical_bytes(type.shape, encoding.dtype);
}

struct Argument {
  Memory* memory;
  size_t bytes;
};

Argument argument(const Encoding& encoding, const TensorType& type) {
  return {devices().at(encoding.device.id).scopes.at(encoding.device.memory_scope).get(),
          bytes_of(encoding, type)};
}

class SimulatedKernel : public Kernel {
 public:
  SimulatedKernel(std::unique_ptr<Kernel> kernel, Device& device, const Function& function,
                  const Variant& variant)
      : kernel_(std::move(kernel)),
        device_(device),
        seconds_(device.flops > 0 ? function_flops(function) / device.flops : 0) {
    for (size_t i = 0; i < variant.inputs.size(); ++i)
      inputs_.push_back(argument(variant.inputs[i], function->params[i]->tensor_type()));
    const std::vector<TensorType> leaves = function->result_type().leaves();
    for (size_t i = 0; i < variant.outputs.size(); ++i)
      outputs_.push_back(argument(variant.outputs[i], leaves[i]));
  }

  Status run(const KernelArgs& args) override {
    const std::vector<void*> inputs(args.inputs, args.inputs + inputs_.size()),
        outputs(args.outputs, args.outputs + outputs_.size());
    device_.queue->add([this, inputs, outputs]() -> Status {
      const std::vector<void*> in = TRY(contents(inputs_, inputs)),
                               out = TRY(contents(outputs_, outputs));
      std::vector<unsigned char> workspace(kernel_->workspace_bytes() + 1);
      const Stopwatch watch;
      TRY(kernel_->run({in.data(), out.data(), workspace.data()}));
      while (watch.seconds() < seconds_) continue;
      return {};
    });
    return {};
  }
  Status finish() override { return device_.queue->wait(); }

 private:
  static Result<std::vector<void*>> contents(const std::vector<Argument>& arguments,
                                             const std::vector<void*>& addresses) {
    std::vector<void*> result;
    for (size_t i = 0; i < arguments.size(); ++i) {
      result.push_back(arguments[i].memory->contents(addresses[i], arguments[i].bytes));
      if (result.back() == nullptr)
        return internal_error("simulated: an argument that is not in the device's memory");
    }
    return result;
  }

  std::unique_ptr<Kernel> kernel_;
  Device& device_;
  const double seconds_;  // that a run takes at least
  std::vector<Argument> inputs_, outputs_;
};

BackendTraits traits_of_devices() {
  BackendTraits traits{.version = "1", .by_default = false, .devices = {}};
  for (const auto& [id, device] : simulated::devices()) traits.devices.push_back({kKind, id, ""});
  return traits;
}

class SimulatedBackend : public Backend {
 public:
  // Memory is there before anybody asks for a kernel: transfers are the host's.
  SimulatedBackend() : Backend(kKind, traits_of_devices) { simulated::devices(); }
  PartitionRulePtr partition_rule(const Target&) const override {
    return std::make_shared<HostPartitionRule>();
  }

  // In the device's memory, and in its scope where all tensors fit there.
  Result<std::vector<Variant>> variants(const Function& function, const Target& target,
                                        const CompileOptions&) const override {
    TRY(check_interpretable(function));
    std::vector<Variant> list;
    for (const std::string& scope : {std::string(), kScratch}) {
      Variant variant = Variant::plain(scope.empty() ? "memory" : scope, function);
      size_t bytes = 0;
      const std::vector<TensorType> leaves = function->result_type().leaves();
      for (size_t i = 0; i < variant.inputs.size(); ++i)
        bytes += place(variant.inputs[i], target, scope, function->params[i]->tensor_type());
      for (size_t i = 0; i < variant.outputs.size(); ++i)
        bytes += place(variant.outputs[i], target, scope, leaves[i]);
      const auto& memory = simulated::devices().at(target.device.id).scopes.at(scope);
      if (scope.empty() || bytes <= memory->capacity()) list.push_back(std::move(variant));
    }
    return list;
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target& target,
                                          const CompileOptions&) const override {
    TRY(check_interpretable(function));
    return std::unique_ptr<Kernel>(std::make_unique<SimulatedKernel>(
        TRY(make_interpreted_kernel(function)), simulated::devices().at(target.device.id), function,
        variant));
  }

 private:
  static size_t place(Encoding& encoding, const Target& target, const std::string& scope,
                      const TensorType& type) {
    encoding.device = target.device;
    encoding.device.memory_scope = scope;
    return bytes_of(encoding, type);
  }
};

}  // namespace
}  // namespace collage::simulated

COLLAGE_PLUGIN(std::make_unique<collage::simulated::SimulatedBackend>())
