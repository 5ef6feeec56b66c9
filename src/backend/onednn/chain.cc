#include "backend/onednn/chain.h"

#include <algorithm>

namespace collage::onednn {

namespace {

size_t varying_dims(const Shape& shape) {
  return static_cast<size_t>(
      std::count_if(shape.begin(), shape.end(), [](int64_t d) { return d != 1; }));
}

// The type of a step's operand beside a running value of that type.
Type type_beside(const Operand& operand, Type running) {
  if (operand.is_constant()) return kFloat;
  return operand.type == kFloat && running == kBrainFloat ? kBrainFloat : operand.type;
}

}  // namespace

Result<std::vector<OperandForm>> operand_forms(std::span<const Step> steps, const Shape& running,
                                               const Layout& layout, OperandUse use, Type type) {
  std::vector<OperandForm> forms;
  for (const Step& step : steps) {
    if (step.kind == Step::Kind::kEltwise) {
      forms.push_back({});
      continue;
    }
    const Operand& operand = step.operand;
    bool as_running = operand.shape == running || varying_dims(operand.shape) > 1 ||
                      use == OperandUse::kPrimitive;
    Layout wanted = as_running ? layout : Layout();
    Layout asked = canonical(wanted, operand.shape);
    if (!operand.is_constant() && !asked.is_plain() && operand.rank != running.size())
      return unsupported("onednn: a broadcast operand of rank {} cannot be {}", operand.rank,
                         layout.to_string());
    forms.push_back({desc_of(operand.shape, wanted, type_beside(operand, type)), asked});
  }
  return forms;
}

dnnl::post_ops make_post_ops(std::span<const Step> steps, std::span<const OperandForm> forms) {
  dnnl::post_ops ops;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind == Step::Kind::kEltwise)
      ops.append_eltwise(steps[i].algorithm, steps[i].alpha, steps[i].beta);
    else
      ops.append_binary(steps[i].algorithm, forms[i].desc);
  }
  return ops;
}

void bind_post_ops(std::span<const std::optional<Value>> operands, Bindings& bindings) {
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i])
      bindings.push_back(
          {DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1, *operands[i]});
}

std::vector<std::optional<Value>> bind_operands(ProgramBuilder& builder,
                                                std::span<const Step> steps,
                                                std::span<const OperandForm> forms) {
  std::vector<std::optional<Value>> values;
  for (size_t i = 0; i < steps.size(); ++i) {
    const Operand& operand = steps[i].operand;
    if (steps[i].kind == Step::Kind::kEltwise)
      values.push_back(std::nullopt);
    else if (operand.is_constant())
      values.push_back(
          builder.constant(operand.constant, plain_desc(forms[i].desc.get_dims()), forms[i].desc));
    else
      values.push_back(builder.input(static_cast<size_t>(operand.param), forms[i].desc));
  }
  return values;
}

Shape merge_dims(const Shape& shape, const std::vector<size_t>& ends) {
  Shape merged;
  size_t dim = 0;
  for (size_t end : ends) {
    merged.push_back(1);
    for (; dim < end; ++dim) merged.back() *= shape[dim];
  }
  return merged;
}

Result<std::vector<Step>> merge_dims(std::span<const Step> steps, const Shape& running,
                                     const std::vector<size_t>& ends) {
  std::vector<Step> merged(steps.begin(), steps.end());
  Shape whole = merge_dims(running, ends);
  for (Step& step : merged) {
    if (step.kind == Step::Kind::kEltwise) continue;
    step.operand.shape = merge_dims(step.operand.shape, ends);
    for (size_t g = 0; g < ends.size(); ++g)
      if (step.operand.shape[g] != 1 && step.operand.shape[g] != whole[g])
        return unsupported("onednn: an operand is broadcast along a part of merged dimensions");
  }
  return merged;
}

std::vector<size_t> mergeable_groups(std::span<const Step> steps, const Shape& running) {
  std::vector<size_t> ends;
  std::vector<bool> previous;
  for (size_t d = 0; d < running.size(); ++d) {
    if (running[d] == 1) {
      if (!ends.empty()) ends.back() = d + 1;
      continue;
    }
    std::vector<bool> broadcast;
    for (const Step& step : steps)
      if (step.kind == Step::Kind::kBinary) broadcast.push_back(step.operand.shape[d] == 1);
    if (ends.empty() || broadcast != previous)
      ends.push_back(d + 1);
    else
      ends.back() = d + 1;
    previous = std::move(broadcast);
  }
  if (ends.empty()) ends.push_back(running.size());
  return ends;
}

namespace {

Result<ChainStage> plan_stage(std::span<const Step> steps, size_t begin, size_t end,
                              const Desc& running, std::span<const OperandForm> forms) {
  return guarded("elementwise", [&]() -> Result<ChainStage> {
    const Step& first = steps[begin];
    dnnl::primitive_attr attr = attributes(make_post_ops(
        steps.subspan(begin + 1, end - begin - 1), forms.subspan(begin + 1, end - begin - 1)));
    auto checked = [&](auto pd) -> Result<ChainStage> {
      if (is_naive(pd.impl_info_str())) return unsupported("onednn: only a naive implementation");
      return ChainStage{std::move(pd), begin, end};
    };
    if (first.kind == Step::Kind::kEltwise)
      return checked(dnnl::eltwise_forward::primitive_desc(
          engine(), dnnl::prop_kind::forward_inference, first.algorithm, running, running,
          first.alpha, first.beta, attr));
    return checked(dnnl::binary::primitive_desc(engine(), first.algorithm, running,
                                                forms[begin].desc, running, attr));
  });
}

}  // namespace

Result<std::vector<ChainStage>> plan_chain(std::span<const Step> steps, const Desc& running,
                                           std::span<const OperandForm> forms) {
  std::vector<ChainStage> stages;
  for (size_t begin = 0; begin < steps.size();) {
    size_t end = steps.size();
    Result<ChainStage> stage = plan_stage(steps, begin, end, running, forms);
    while (!stage.ok() && --end > begin) stage = plan_stage(steps, begin, end, running, forms);
    if (!stage.ok()) return stage.status();
    stages.push_back(std::move(*stage));
    begin = end;
  }
  return stages;
}

void append_chain(ProgramBuilder& builder, std::span<const ChainStage> stages,
                  std::span<const std::optional<Value>> operands, Value source, Value target) {
  for (const ChainStage& stage : stages) {
    Bindings bindings;
    if (operands[stage.begin])
      bindings = {{DNNL_ARG_SRC_0, source}, {DNNL_ARG_SRC_1, *operands[stage.begin]}};
    else
      bindings = {{DNNL_ARG_SRC, source}};
    bindings.push_back({DNNL_ARG_DST, target});
    bind_post_ops(operands.subspan(stage.begin + 1, stage.end - stage.begin - 1), bindings);
    std::visit([&](const auto& pd) { builder.add(pd, bindings); }, stage.pd);
    source = target;
  }
}

}  // namespace collage::onednn
