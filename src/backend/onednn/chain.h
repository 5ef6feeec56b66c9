// A chain of elementwise steps as oneDNN primitives: each primitive takes one step and, as its post
// operations, as many of the following as it can without naive loops.
#pragma once

#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "backend/onednn/composite.h"
#include "backend/onednn/kernels/program.h"
#include "backend/onednn/layouts.h"

namespace collage::onednn {

// The form in which oneDNN gets a step's operand, and the layout of its parameter.
struct OperandForm {
  Desc desc;
  Layout layout;
};

// Forms of the operands of all steps (an empty descriptor for eltwise steps) beside a running value
// of that shape and layout. Post operations of convolutions and products need operands that vary
// along one dimension plain; elementwise primitives need them laid out as the running value.
// Parameters that are float32 in the function have the running value's type, unless that is of
// integers; constants are float32.
enum class OperandUse { kPostOperation, kPrimitive };
Result<std::vector<OperandForm>> operand_forms(std::span<const Step> steps, const Shape& running,
                                               const Layout& layout, OperandUse use,
                                               Type type = kFloat);

// Returns the steps as post operations of one primitive.
dnnl::post_ops make_post_ops(std::span<const Step> steps, std::span<const OperandForm> forms);
void bind_post_ops(std::span<const std::optional<Value>> operands, Bindings& bindings);

// Returns a program's values for the operands: parameters and constants; none for eltwise steps.
std::vector<std::optional<Value>> bind_operands(ProgramBuilder& builder,
                                                std::span<const Step> steps,
                                                std::span<const OperandForm> forms);

// Returns the same steps on a running value with merged neighbouring dimensions: `ends` lists where
// each group of dimensions ends. Fails if an operand is broadcast along a part of a group.
Result<std::vector<Step>> merge_dims(std::span<const Step> steps, const Shape& running,
                                     const std::vector<size_t>& ends);
Shape merge_dims(const Shape& shape, const std::vector<size_t>& ends);
// Returns the fewest groups for which merge_dims succeeds.
std::vector<size_t> mergeable_groups(std::span<const Step> steps, const Shape& running);

struct ChainStage {
  std::variant<dnnl::eltwise_forward::primitive_desc, dnnl::binary::primitive_desc> pd;
  size_t begin, end;  // its steps
};

// Plans stages that compute all steps on a running value described by `running`.
Result<std::vector<ChainStage>> plan_chain(std::span<const Step> steps, const Desc& running,
                                           std::span<const OperandForm> forms);
// Appends them: the first reads `source`, all write `target`.
void append_chain(ProgramBuilder& builder, std::span<const ChainStage> stages,
                  std::span<const std::optional<Value>> operands, Value source, Value target);

}  // namespace collage::onednn
