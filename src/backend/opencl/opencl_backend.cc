#include "backend/opencl/opencl_backend.h"

#include <algorithm>
#include <optional>

#include "backend/fingerprint.h"
#include "backend/gemm/read_product.h"
#include "backend/native/codegen/code_cache.h"
#include "backend/native/codegen/halide_guard.h"
#include "backend/native/codegen/kernel_arguments.h"
#include "backend/native/codegen/linker.h"
#include "backend/native/integers/real_products.h"
#include "backend/native/kernel_group.h"
#include "backend/native/native_rule.h"
#include "backend/opencl/kernel_builder.h"
#include "backend/opencl/kernels/clblast_kernel.h"
#include "backend/opencl/kernels/loaders.h"
#include "backend/opencl/kernels/opencl_kernel.h"
#include "backend/opencl/kernels/runtime_hooks.h"
#include "ir/visitor.h"

namespace collage {
namespace opencl {
namespace {

/// Null where there is no such device.
const DeviceInfo* info_of(const VirtualDevice& device) {
  const auto id = static_cast<size_t>(device.id);
  return id < known_devices().size() ? &known_devices()[id] : nullptr;
}

Halide::Target target_of(const VirtualDevice& device) {
  Halide::Target target = native::kernel_target().with_feature(Halide::Target::OpenCL);
  const DeviceInfo* info = info_of(device);
  // Quantising to int32 goes by way of them.
  if (info != nullptr && info->has_doubles) target.set_feature(Halide::Target::CLDoubles);
  return target;
}

bool is_processor(const VirtualDevice& device) {
  const DeviceInfo* info = info_of(device);
  return info != nullptr && info->is_cpu;
}

/// Schedules beside positions among tiles; names too.
constexpr char kLibrary[] = "clblast", kRepacked[] = "clblast repacked";

/// The function as a product that the library computes, if it is one; and in which ways.
std::optional<gemm::Product> library_product(const Function& flat) {
  Result<gemm::Product> product = gemm::read_product(flat);
  if (!product || product->addend) return std::nullopt;
  return std::move(product).value();
}
std::vector<std::string> library_variants(const gemm::Product& product) {
  if (product.b.is_constant()) return {kLibrary, kRepacked};
  return {kLibrary};
}

/// A row for each tile.
std::vector<KernelRow> rows() {
  std::vector<KernelRow> rows;
  for (const bool on_cpu : {true, false})
    for (const Tile& tile : sum_tiles(on_cpu))
      rows.push_back({.name = tile.to_string(),
                      .computes = "products, convolutions, attention",
                      .isa = on_cpu ? "processors" : "graphics processors"});
  for (const Tile& tile : plain_tiles())
    rows.push_back({.name = tile.to_string(), .computes = "everything else"});
  // A NaN of one row has been seen in others of its tile.
  rows.push_back({.name = "attention", .computes = "attention, by any tile", .spreads_nan = true});
  rows.push_back({.name = "exponentials",
                  .computes = "exponentials and logarithms, by any tile",
                  .isa = "processors",
                  .rounding = kReordered});
  for (const char* name : {kLibrary, kRepacked})
    rows.push_back({.name = name, .computes = "matrix products, by CLBlast"});
  return rows;
}

/// Loads the drivers.
BackendTraits traits_of_devices() {
  BackendTraits traits{
      .version = fmt::format("halide-{}.{}.{}+{}", HALIDE_VERSION_MAJOR, HALIDE_VERSION_MINOR,
                             HALIDE_VERSION_PATCH, source_fingerprint("opencl")),
      .priority = 40,
      .by_default = false,
      .devices = {},
      .kernels = rows()};
  for (const DeviceInfo& device : known_devices()) {
    traits.version += fmt::format("+{} {}", device.name, device.driver);
    traits.by_default |= !device.is_cpu;
    traits.devices.push_back({kDeviceKind, static_cast<int>(traits.devices.size()), ""});
  }
  return traits;
}

class OpenClBackend : public Backend {
 public:
  OpenClBackend() : Backend("opencl", traits_of_devices) {}
  Status available() const override {
    if (known_devices().empty())
      return error(ErrorCode::kUnavailable,
                   "no OpenCL device: install a vendor's OpenCL driver, or pocl-opencl-icd to run "
                   "on the processor");
    return native::kernels_available();
  }
  PartitionRulePtr partition_rule(const Target&) const override {
    return native::make_native_rule("opencl", check_call);
  }

  Result<std::vector<Variant>> variants(const Function& function, const Target& target,
                                        const CompileOptions&) const override {
    const Function flat = TRY(native::flattened(function));
    TRY(check_function(flat));
    const std::vector<Tile> tiles = TRY(tiles_of(flat, is_processor(target.device)));
    std::vector<std::pair<std::string, std::string>> names;  // and schedules
    for (const Tile& tile : tiles)
      names.emplace_back(tile.to_string(), std::to_string(names.size()));
    if (const auto product = library_product(flat))
      for (const std::string& name : library_variants(*product)) names.emplace_back(name, name);
    const std::vector<Expr> nodes = post_order(flat->body);
    const bool attends = std::any_of(nodes.begin(), nodes.end(), [](const Expr& node) {
      return as_op(node, "nn.attention") != nullptr;
    });
    // Drivers of graphics processors keep what is promised: opencl is in use by default there.
    const bool reorders = is_processor(target.device) && TRY(holds_exponentials(flat));
    std::vector<Variant> variants;
    for (const auto& [name, schedule] : names) {
      Variant variant = Variant::plain(name, function);
      if (reorders) variant.rounding = kReordered;
      variant.schedule = schedule;
      variant.spreads_nan = attends;
      variant.weights.clear();  // a form of its own, in the device's memory
      for (auto* encodings : {&variant.inputs, &variant.outputs})
        for (Encoding& encoding : *encodings) encoding.device = target.device;
      variants.push_back(std::move(variant));
    }
    return variants;
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target& target,
                                          const CompileOptions& options) const override {
    const Function flat = TRY(native::flattened(function));
    if (variant.schedule == kLibrary || variant.schedule == kRepacked) {
      std::optional<gemm::Product> product = library_product(flat);
      if (!product) return internal_error("opencl: no product for '{}'", variant.schedule);
      return make_clblast_kernel(std::move(*product), variant.schedule == kRepacked,
                                 target.device.id);
    }
    const std::vector<Tile> tiles = TRY(tiles_of(flat, is_processor(target.device)));
    const std::optional<size_t> tile = position_in(variant.schedule, tiles.size());
    if (!tile) return internal_error("opencl: no variant {}", variant.to_string());
    const native::BuiltKernel built =
        TRY(native::guarded("opencl", [&] { return build_kernel(flat, tiles[*tile]); }));
    const std::string key =
        fmt::format("{}\n{}\n{}\n{}", traits().version, target_of(target.device).to_string(),
                    native::program_text(flat), variant.to_string());
    const native::CodeCache cache(options.cache_folder,
                                  {"opencl", target_of(target.device), runtime_hooks()});
    auto code = TRY(cache.get(key, [&]() -> Result<native::BuiltPipeline> {
      native::BuiltPipeline pipeline{built.pipeline, {}};
      for (const native::Binding& binding : built.bindings)
        pipeline.inputs.push_back(binding.buffer.param());
      return pipeline;
    }));
    std::unique_ptr<Kernel> kernel = TRY(OpenClKernel::make(
        std::move(code), TRY(native::kernel_arguments(built)), target.device.id));
    return kernel;
  }
};

}  // namespace
}  // namespace opencl

std::unique_ptr<Backend> make_opencl_backend() {
  opencl::register_loaders();
  return std::make_unique<opencl::OpenClBackend>();
}

}  // namespace collage
