// Implementation: one variant of a composite together with the data to build its kernel. Each
// family of operators plans its implementations in a file of its own; planning asks oneDNN what it
// would run, which is cheap; building generates code and packs constants.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/onednn/chain.h"
#include "backend/onednn/composite.h"
#include "backend/onednn/layouts.h"
#include "backend/variant.h"

namespace collage::onednn {

struct Implementation {
  Variant variant;
  std::function<std::unique_ptr<Kernel>()> build;  // may throw what oneDNN throws
};
using CompositePtr = std::shared_ptr<const Composite>;

// The implementations found so far, and the first reason for a refusal.
class Implementations {
 public:
  // Adds one unless it was refused or an equal variant exists already.
  void add(Result<Implementation> implementation);
  // Returns what was found; fails with the reason if nothing was.
  Result<std::vector<Implementation>> take();

 private:
  std::vector<Implementation> list_;
  Status reason_;
};

// Returns Variant::weights of a constant with one descriptor in the function and another in the
// kernel.
std::string weight_form(const Desc& given, const Desc& kept);

// Returns a computed value in another form: itself where it is in that one, else a temporary that
// every run reorders it to.
Value reordered(ProgramBuilder& builder, Value given, const Desc& from, const Desc& to);

// The encodings of a composite's parameters, collected operand by operand.
class Encodings {
 public:
  explicit Encodings(const Composite& composite);
  // Requests an operand's parameter in that layout and type (constants are packed as needed). Fails
  // if another one was requested for the parameter.
  Status want(const Operand& operand, const Layout& layout, Type type = kFloat);
  Status want(std::span<const Step> steps, std::span<const OperandForm> forms);
  // Returns the variant; lowered, also in its name, if the composite's types are.
  Variant variant(std::string name, const Layout& output) const;

 private:
  const Composite& composite_;
  std::vector<Encoding> inputs_;
  std::vector<bool> fixed_;
};

// The steps of a composite split between the anchor's post operations [0, fused) and elementwise
// primitives that follow it, in place on its result.
struct Tail {
  std::span<const Step> steps;
  size_t fused = 0;
  std::vector<OperandForm> forms;
  std::vector<ChainStage> stages;
  Masks masks;  // of the anchor's scales and zero points

  std::span<const Step> fused_steps() const { return steps.first(fused); }
};

// Makes an anchor with as many steps fused as it takes: `make(attributes)` gives its primitive
// descriptor (or throws) and `accept` says whether its implementation will do. The rest of the
// steps follow as primitives in that layout and type of the result, unless these are integers.
// `masks` are those of the attributes, whose scales and zero points the anchor's bindings give.
template <typename PrimitiveDesc>
struct Anchored {
  PrimitiveDesc pd;
  Tail tail;
};
template <typename Make>
auto plan_anchor(std::span<const Step> steps, const Shape& result, const Layout& layout, Make make,
                 Type type = kFloat, const Masks& masks = {})
    -> Result<Anchored<typename std::invoke_result_t<Make, dnnl::primitive_attr>>>;

// Adds the anchor with its own bindings and those of the fused steps, then the steps that follow.
// The anchor's result is `target`, theirs `running`: two views of one buffer, or the program's
// output seen as the anchor's descriptor and as `result`.
template <typename PrimitiveDesc>
void append_anchor(ProgramBuilder& builder, const Anchored<PrimitiveDesc>& anchored,
                   Bindings bindings, Value target, Value running);
template <typename PrimitiveDesc>
void append_anchor(ProgramBuilder& builder, const Anchored<PrimitiveDesc>& anchored,
                   Bindings bindings, const Desc& result);

// The families.
Result<std::vector<Implementation>> plan_convolution(const CompositePtr& composite);
Result<std::vector<Implementation>> plan_transposed_convolution(const CompositePtr& composite);
Result<std::vector<Implementation>> plan_product(const CompositePtr& composite);
Result<std::vector<Implementation>> plan_attention(const CompositePtr& composite);
Result<std::vector<Implementation>> plan_pooling(const CompositePtr& composite);
Result<std::vector<Implementation>> plan_elementwise(const CompositePtr& composite);
Result<std::vector<Implementation>> plan_softmax(const CompositePtr& composite);
Result<std::vector<Implementation>> plan_layer_norm(const CompositePtr& composite);
Result<std::vector<Implementation>> plan_reduction(const CompositePtr& composite);
Result<std::vector<Implementation>> plan_resampling(const CompositePtr& composite);
Result<std::vector<Implementation>> plan_concat(const CompositePtr& composite);
Result<std::vector<Implementation>> plan_copy(const CompositePtr& composite);
Result<std::vector<Implementation>> plan_quantisation(const CompositePtr& composite);

// ---- definitions of templates ----

template <typename Make>
auto plan_anchor(std::span<const Step> steps, const Shape& result, const Layout& layout, Make make,
                 Type type, const Masks& masks)
    -> Result<Anchored<typename std::invoke_result_t<Make, dnnl::primitive_attr>>> {
  using PrimitiveDesc = typename std::invoke_result_t<Make, dnnl::primitive_attr>;
  Status reason;
  for (size_t fused = steps.size() + 1; fused-- > 0;) {
    auto attempt = guarded("post operations", [&]() -> Result<Anchored<PrimitiveDesc>> {
      Tail tail{steps, fused, {}, {}, masks};
      tail.forms =
          TRY(operand_forms(steps.first(fused), result, layout, OperandUse::kPostOperation, type));
      PrimitiveDesc pd = make(attributes(make_post_ops(tail.fused_steps(), tail.forms), masks));
      if (is_naive(pd.impl_info_str())) return unsupported("onednn: only a naive implementation");
      std::vector<OperandForm> rest =
          TRY(operand_forms(steps.subspan(fused), result, layout, OperandUse::kPrimitive, type));
      tail.stages = TRY(plan_chain(steps.subspan(fused), desc_of(result, layout, type), rest));
      tail.forms.insert(tail.forms.end(), rest.begin(), rest.end());
      return Anchored<PrimitiveDesc>{std::move(pd), std::move(tail)};
    });
    if (attempt.ok()) return attempt;
    reason = attempt.status();
    if (is_byte(type)) break;  // further primitives would round once more
  }
  return reason;
}

template <typename PrimitiveDesc>
void append_anchor(ProgramBuilder& builder, const Anchored<PrimitiveDesc>& anchored,
                   Bindings bindings, Value target, Value running) {
  const Tail& tail = anchored.tail;
  auto operands = bind_operands(builder, tail.steps, tail.forms);
  std::span<const std::optional<Value>> all = operands;
  bindings.push_back({DNNL_ARG_DST, target});
  bind_post_ops(all.first(tail.fused), bindings);
  builder.add(anchored.pd, bindings, tail.masks);
  append_chain(builder, tail.stages, all.subspan(tail.fused), running, running);
}

template <typename PrimitiveDesc>
void append_anchor(ProgramBuilder& builder, const Anchored<PrimitiveDesc>& anchored,
                   Bindings bindings, const Desc& result) {
  append_anchor(builder, anchored, std::move(bindings), builder.output(0, anchored.pd.dst_desc()),
                builder.output(0, result));
}

}  // namespace collage::onednn
