#include "backend/native/native_backend.h"

#include <mutex>

#include "backend/fingerprint.h"
#include "backend/native/called_program.h"
#include "backend/native/codegen/code_cache.h"
#include "backend/native/codegen/halide_guard.h"
#include "backend/native/codegen/linker.h"
#include "backend/native/integers/real_products.h"
#include "backend/native/kernel_builder.h"
#include "backend/native/kernel_variants.h"
#include "backend/native/kernels/loaders.h"
#include "backend/native/lower_kernel.h"
#include "backend/native/native_rule.h"
#include "backend/program_scheduler.h"
#include "base/log.h"

namespace collage {
namespace native {
namespace {

std::string halide_version() {
  return fmt::format("{}.{}.{}", HALIDE_VERSION_MAJOR, HALIDE_VERSION_MINOR, HALIDE_VERSION_PATCH);
}

Result<ChannelLayout> channel_layout(const Encoding& encoding, int64_t rank) {
  if (encoding.is_plain()) return ChannelLayout::kPlain;
  if (rank >= 3 && encoding.layout == Layout::channels_blocked(rank, kChannelBlock) &&
      encoding.device == VirtualDevice{})
    return ChannelLayout::kBlocked;
  if (rank >= 3 && encoding.layout == Layout::channels_last(rank) &&
      encoding.device == VirtualDevice{})
    return ChannelLayout::kLast;
  return unsupported("native: no kernels for the encoding {}", encoding.to_string());
}

std::vector<KernelRow> rows() {
  std::vector<KernelRow> rows;
  for (const KernelKind& kind : kernel_table()) rows.push_back(kind.row);
  return rows;
}

class NativeBackend : public Backend, public ProgramScheduler {
 public:
  NativeBackend()
      : Backend("native", [] {
          return BackendTraits{.version = fmt::format("halide-{}+{}", halide_version(),
                                                      source_fingerprint("native")),
                               .priority = 30,
                               .lowers = true,
                               .options = {{"symbolic", {"only"}}},
                               .kernels = rows()};
        }) {}
  // Without it much is slower, which nobody should have to find out.
  Status available() const override {
    Status status = kernels_available();
    static std::once_flag told;
    if (!status.ok())
      std::call_once(told, [&] { log::warn("native is left out: {}", status.message()); });
    return status;
  }

  PartitionRulePtr partition_rule(const Target&) const override { return make_native_rule(); }

  // `native -symbolic=only` offers code that serves all shapes of the function (symbolic_kernel.h)
  // alone, where there is some.
  Result<std::vector<Variant>> variants(const Function& function, const Target& target,
                                        const CompileOptions& options) const override {
    return guarded("native", [&] {
      return kernel_variants(function, options.rounding, is_symbolic(target), options.threads);
    });
  }

  // `native -symbolic=only` has no others than `variants` lists.
  Result<ScheduleSpace> schedule_space(const Function& function, const Target& target,
                                       const CompileOptions& options) const override {
    if (is_symbolic(target)) return ScheduleSpace();
    const Function flat = TRY(flattened(function));
    return guarded("native", [&] { return kernel_schedules(flat, options.threads); });
  }

  Result<std::string> scheduled_program(const Function& function, const std::string& variant,
                                        int threads) const override {
    return guarded("native", [&] { return native::scheduled_program(function, variant, threads); });
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&,
                                          const CompileOptions& options) const override {
    const AssumedTarget target(options.features);
    return lower_kernel(function, variant, traits().version, options);
  }

  Result<std::unique_ptr<Kernel>> compile_conversion(const TensorType& type, const Encoding& from,
                                                     const Encoding& to,
                                                     const CompileOptions& options) const override {
    const AssumedTarget assumed(options.features);
    const auto rank = static_cast<int64_t>(type.shape.size());
    const bool bytes = from.dtype == DType::kInt8 || from.dtype == DType::kUInt8;
    if (from.dtype != to.dtype || (from.dtype != DType::kFloat32 && !bytes))
      return unsupported("native: no conversion from {} to {}", from.to_string(), to.to_string());
    const ChannelLayout source = TRY(channel_layout(from, rank)),
                        target = TRY(channel_layout(to, rank));
    if (!bytes && (source == ChannelLayout::kLast || target == ChannelLayout::kLast))
      return unsupported("native: no conversion from {} to {}", from.to_string(), to.to_string());
    BuiltKernel built =
        TRY(guarded("native", [&] { return build_conversion(type, source, target); }));
    built.key = "conversion " + Type(type).to_string() + from.to_string() + to.to_string();
    return loaded_kernel(built, traits().version, options);
  }

 private:
  static bool is_symbolic(const Target& target) {
    const auto found = target.options.find("symbolic");
    return found != target.options.end() && found->second == "only";
  }
};

}  // namespace
}  // namespace native

std::unique_ptr<Backend> make_native_backend() {
  native::register_loaders();
  return std::make_unique<native::NativeBackend>();
}

}  // namespace collage
