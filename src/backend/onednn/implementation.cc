#include "backend/onednn/implementation.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace collage::onednn {

void Implementations::add(Result<Implementation> implementation) {
  if (!implementation.ok()) {
    if (reason_.ok()) reason_ = std::move(implementation).status();
    return;
  }
  bool known = std::any_of(list_.begin(), list_.end(), [&](const Implementation& other) {
    return other.variant == implementation->variant;
  });
  if (!known) list_.push_back(std::move(implementation).value());
}

Result<std::vector<Implementation>> Implementations::take() {
  if (!list_.empty()) return std::move(list_);
  if (reason_.ok()) return unsupported("onednn: no implementation");
  return reason_;
}

std::string weight_form(const Desc& given, const Desc& kept) {
  if (given == kept) return kPlainWeights;
  if (kept.get_format_kind() != dnnl::memory::format_kind::blocked) return "";
  return fmt::format("onednn type {} strides {} blocks {} of {}, {} bytes",
                     static_cast<int>(kept.get_data_type()), fmt::join(kept.get_strides(), "x"),
                     fmt::join(kept.get_inner_blks(), "x"), fmt::join(kept.get_inner_idxs(), "x"),
                     kept.get_size());
}

Value reordered(ProgramBuilder& builder, Value given, const Desc& from, const Desc& to) {
  if (from == to) return given;
  const Value result = builder.temporary(to);
  const dnnl::reorder::primitive_desc pd(engine(), from, engine(), to, attributes());
  builder.add(pd, {{DNNL_ARG_FROM, given}, {DNNL_ARG_TO, result}});
  return result;
}

Encodings::Encodings(const Composite& composite)
    : composite_(composite), fixed_(composite.function->params.size(), false) {
  for (const Expr& param : composite.function->params)
    inputs_.push_back(Encoding{param->tensor_type().dtype, Layout(), VirtualDevice{}});
}

Status Encodings::want(const Operand& operand, const Layout& layout, Type type) {
  if (operand.is_constant()) return {};
  auto index = static_cast<size_t>(operand.param);
  Encoding asked =
      encoding_of(canonical(layout, composite_.function->params[index]->tensor_type().shape), type);
  if (fixed_[index] && !(inputs_[index] == asked))
    return unsupported("onednn: one tensor wanted as {} and {}", inputs_[index].to_string(),
                       asked.to_string());
  inputs_[index] = asked;
  fixed_[index] = true;
  return {};
}

Status Encodings::want(std::span<const Step> steps, std::span<const OperandForm> forms) {
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].kind == Step::Kind::kBinary)
      TRY(want(steps[i].operand, forms[i].layout, forms[i].desc.get_data_type()));
  return {};
}

Variant Encodings::variant(std::string name, const Layout& output) const {
  const Types& types = composite_.types;
  if (composite_.quantised()) name = "int8 " + name;
  if (types.lowered()) name = "bf16 " + name;
  Variant variant{
      std::move(name), inputs_, {encoding_of(canonical(output, composite_.result), types.result)}};
  if (types.lowered()) {
    variant.rounding = types.result == kFloat ? rounding::kBFloat16Factors : rounding::kBFloat16;
    variant.work = {.unit = "bfloat16", .constants = 0.5};
  }
  return variant;
}

}  // namespace collage::onednn
