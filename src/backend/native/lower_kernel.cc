#include "backend/native/lower_kernel.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "backend/native/codegen/code_cache.h"
#include "backend/native/codegen/halide_guard.h"
#include "backend/native/codegen/kernel_arguments.h"
#include "backend/native/codegen/kernel_dump.h"
#include "backend/native/integers/real_products.h"
#include "backend/native/kernel_table.h"
#include "backend/native/kernels/native_kernel.h"
#include "ir/visitor.h"
#include "ops/indices.h"
#include "tensor_program/call.h"
#include "tensor_program/term_walk.h"

namespace collage::native {
namespace {

namespace tp = tensor_program;

bool holds_non_finite(const Result<tp::Program>& program) {
  bool found = false;
  if (!program.ok()) return found;
  for (const tp::Stage& stage : program->stages)
    tp::for_each_term(stage, [&](const tp::Term& root) {
      tp::for_each_inside(root, [&](const tp::Term& term) {
        found = found || (term->op == tp::TermOp::kConstant && is_float(term.dtype()) &&
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
    const CallNode* call = as_op(expr, tp::kCallOp);
    if (call != nullptr && holds_non_finite(tp::program_of_call(*call))) return true;
  }
  return false;
}

/// The parameters that are read as indices, and into how many elements at least.
std::map<int, int64_t> indexed_parameters(const Function& function) {
  std::map<int, int64_t> indexed;
  for (const Expr& expr : post_order(function->body)) {
    const auto* call = as<CallNode>(expr);
    const Ints extents = call != nullptr && call->op != nullptr ? index_extents(*call) : Ints();
    if (extents.empty()) continue;
    for (size_t i = 0; i < function->params.size(); ++i)
      if (function->params[i].get() == index_origin(call->args[1])) {
        int64_t& extent = indexed.emplace(static_cast<int>(i), INT64_MAX).first->second;
        extent = std::min(extent, extents[0]);
      }
  }
  return indexed;
}

BuiltPipeline pipeline_of(const BuiltKernel& built, bool strict) {
  BuiltPipeline pipeline{built.pipeline, {}, false, built.checked, strict};
  for (const Binding& binding : built.bindings) {
    pipeline.inputs.push_back(binding.buffer.param());
    pipeline.prefetches = pipeline.prefetches || binding.ahead;
  }
  pipeline.inputs.insert(pipeline.inputs.end(), built.symbols.begin(), built.symbols.end());
  return pipeline;
}

}  // namespace

Result<std::unique_ptr<Kernel>> lower_kernel(const Function& function, const Variant& variant,
                                             const std::string& version,
                                             const CompileOptions& options) {
  const auto [kind, schedule] = find_kind(variant.schedule);
  if (kind == nullptr) return internal_error("native: no variant {}", variant.to_string());
  const Function flat = TRY(kind->of_quantised ? inline_calls(function) : flattened(function));
  const std::string text = program_text(flat);
  KernelDump dump = TRY(KernelDump::open(variant, text));
  TRY(dump.write("function", [&]() -> Result<std::string> { return text; }));
  const Request request{flat, variant, schedule, options.threads, dump};
  BuiltKernel built = TRY(guarded("native", [&, kind = kind] { return kind->build(request); }));
  const bool strict = holds_non_finite(flat);
  for (const auto& [step, form] :
       {std::pair("halide", PipelineText::kHalide), std::pair("assembly", PipelineText::kAssembly)})
    TRY(dump.write(step, [&, form = form] { return text_of(pipeline_of(built, strict), form); }));
  built.indexed = indexed_parameters(flat);
  if (built.symbols.empty()) built.key = text + variant.to_string() + "\n" + built.key;
  return loaded_kernel(built, version, options, strict);
}

Result<std::unique_ptr<Kernel>> loaded_kernel(const BuiltKernel& built, const std::string& version,
                                              const CompileOptions& options, bool strict) {
  const std::string key = fmt::format("{}\n{}\n{} threads\n{}", version,
                                      kernel_target().to_string(), options.threads, built.key);
  auto code = TRY(CodeCache(options.cache_folder).get(key, [&]() -> Result<BuiltPipeline> {
    return pipeline_of(built, strict);
  }));
  return std::unique_ptr<Kernel>(std::make_unique<NativeKernel>(
      std::move(code), TRY(kernel_arguments(built)), built.calls_library, built.updates));
}

}  // namespace collage::native
