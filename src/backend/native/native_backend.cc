#include "backend/native/native_backend.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "backend/fingerprint.h"
#include "backend/native/codegen/code_cache.h"
#include "backend/native/codegen/halide_guard.h"
#include "backend/native/codegen/kernel_arguments.h"
#include "backend/native/codegen/linker.h"
#include "backend/native/integers/dot_products.h"
#include "backend/native/integers/real_products.h"
#include "backend/native/kernel_builder.h"
#include "backend/native/kernel_group.h"
#include "backend/native/kernel_variants.h"
#include "backend/native/kernels/loaders.h"
#include "backend/native/kernels/native_kernel.h"
#include "backend/native/native_rule.h"
#include "backend/native/symbolic/symbolic_kernel.h"
#include "base/hash.h"
#include "base/log.h"
#include "ir/visitor.h"
#include "ops/indices.h"
#include "tensor_program/call.h"
#include "tensor_program/term_walk.h"

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

bool holds_non_finite(const Result<tensor_program::Program>& program) {
  bool found = false;
  if (!program.ok()) return found;
  for (const tensor_program::Stage& stage : program->stages)
    tensor_program::for_each_term(stage, [&](const tensor_program::Term& root) {
      tensor_program::for_each_inside(root, [&](const tensor_program::Term& term) {
        found = found || (term->op == tensor_program::TermOp::kConstant && is_float(term.dtype()) &&
                          !std::isfinite(term->real));
      });
    });
  return found;
}

/// Whether the code itself holds an infinity or NaN, as that of a mask does. LLVM may take them for
/// impossible and drop what would lead to one, unless arithmetic is strict; then it fuses no
/// multiplication with an addition either. Those that tensors hold are computed with as they come.
bool holds_non_finite(const Function& function) {
  for (const Expr& expr : post_order(function->body)) {
    const auto* constant = as<ConstantNode>(expr);
    if (constant != nullptr && is_float(constant->value.dtype()) && constant->value.size() == 1 &&
        !std::isfinite(constant->value.element_as_double(0)))
      return true;
    const CallNode* call = as_op(expr, tensor_program::kCallOp);
    if (call != nullptr && holds_non_finite(tensor_program::program_of_call(*call))) return true;
  }
  return false;
}

/// The parameters that are read as indices, and into how many elements at least.
std::map<int, int64_t> indexed_parameters(const Function& function) {
  std::map<int, int64_t> indexed;
  for (const Expr& expr : post_order(function->body)) {
    const CallNode* call = as_op(expr, "take");
    if (call == nullptr) continue;
    for (size_t i = 0; i < function->params.size(); ++i)
      if (function->params[i].get() == index_origin(call->args[1])) {
        int64_t& extent = indexed.emplace(static_cast<int>(i), INT64_MAX).first->second;
        extent = std::min(extent, index_extents(*call)[0]);
      }
  }
  return indexed;
}

class NativeBackend : public Backend {
 public:
  NativeBackend()
      : Backend("native", [] {
          return BackendTraits{
              .version =
                  fmt::format("halide-{}+{}", halide_version(), source_fingerprint("native")),
              .priority = 30,
              .lowers = true,
              .spreads_nan =
                  "Winograd, convolutions of small groups, products of integers, attention"};
        }) {}
  // Without it much is slower, which nobody should have to find out.
  Status available() const override {
    Status status = linking_available();
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
    const Function quantised = TRY(inline_calls(function));
    const Function flat = TRY(with_real_products(quantised));
    return guarded("native", [&]() -> Result<std::vector<Variant>> {
      if (is_symbolic(target)) {
        std::vector<Variant> symbolic = symbolic_variants(flat, options.threads);
        if (!symbolic.empty()) return symbolic;
      }
      // Where nothing is measured the first one is taken.
      std::vector<Variant> variants = dot_variants(quantised, options.threads);
      std::vector<Variant> others = TRY(kernel_variants(flat, options.threads));
      std::move(others.begin(), others.end(), std::back_inserter(variants));
      if (options.rounding == RoundingLimit::kAny) {
        // Products of quantised tensors are of integers without rounding.
        const bool integers = multiplies_integers_faster() && !has_integer_product(quantised);
        others = TRY(lowered_kernel_variants(flat, options.threads, integers));
        std::move(others.begin(), others.end(), std::back_inserter(variants));
      }
      return variants;
    });
  }

  // `native -symbolic=only` has no others than `variants` lists.
  Result<ScheduleSpace> schedule_space(const Function& function, const Target& target,
                                       const CompileOptions& options) const override {
    if (is_symbolic(target)) return ScheduleSpace();
    const Function flat = TRY(flattened(function));
    return guarded("native", [&] { return kernel_schedules(flat, options.threads); });
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&,
                                          const CompileOptions& options) const override {
    const Function flat = TRY(flattened_for(function, variant));
    BuiltKernel built =
        TRY(guarded("native", [&] { return build_kernel(flat, variant, options.threads); }));
    built.indexed = indexed_parameters(flat);
    const std::string text = built.symbols.empty()
                                 ? program_text(flat) + variant.to_string() + "\n" + built.key
                                 : built.key;
    return load(built, text, options, holds_non_finite(flat));
  }

  Result<std::unique_ptr<Kernel>> compile_conversion(const TensorType& type, const Encoding& from,
                                                     const Encoding& to,
                                                     const CompileOptions& options) const override {
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
    return load(built, "conversion " + Type(type).to_string() + from.to_string() + to.to_string(),
                options);
  }

 private:
  static bool is_symbolic(const Target& target) {
    const auto found = target.options.find("symbolic");
    return found != target.options.end() && found->second == "only";
  }

  Result<std::unique_ptr<Kernel>> load(BuiltKernel& built, const std::string& text,
                                       const CompileOptions& options, bool strict = false) const {
    const std::string key = fmt::format("{}\n{}\n{} threads\n{}", traits().version,
                                        kernel_target().to_string(), options.threads, text);
    auto code = TRY(CodeCache(options.cache_folder).get(key, [&]() -> Result<BuiltPipeline> {
      BuiltPipeline pipeline{built.pipeline, {}, false, built.checked, strict};
      for (const Binding& binding : built.bindings) {
        pipeline.inputs.push_back(binding.buffer.param());
        pipeline.prefetches = pipeline.prefetches || binding.ahead;
      }
      pipeline.inputs.insert(pipeline.inputs.end(), built.symbols.begin(), built.symbols.end());
      return pipeline;
    }));
    return std::unique_ptr<Kernel>(std::make_unique<NativeKernel>(
        std::move(code), TRY(kernel_arguments(built)), built.calls_library, built.updates));
  }
};

}  // namespace
}  // namespace native

std::unique_ptr<Backend> make_native_backend() {
  native::register_loaders();
  return std::make_unique<native::NativeBackend>();
}

}  // namespace collage
