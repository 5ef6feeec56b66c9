// OpDef: the definition of one operator: name, arity, attributes with defaults, type rule, fusion
// kind, work estimate and reference kernel. The families live in src/ops and are listed in
// ops/registry.cc; test cases are in src/ops/cases.
//
// Names and attributes are Relay's where Relay has the operator.
#pragma once

#include <collage/tensor.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/attrs.h"
#include "ir/type.h"

namespace collage {

// How an operator may be fused, Relay's TOpPattern. Ordered: a sub-graph's kind is the largest of
// its calls'.
enum class FusionKind {
  kElementwise = 0,  // out[i] = f(in[i]), one to one
  kBroadcast = 1,    // elementwise after broadcasting some input
  kInjective = 2,    // each output element reads one element of each input: reshape, transpose,
                     // slice, pad, concat
  kReduction = 3,    // sum, max, mean over axes
  kAnchor = 4,  // Relay's OutEWiseFusable: convolution, matmul, pooling: elementwise may follow
  kOpaque = 5,  // cannot be fused
};
std::string_view fusion_kind_name(FusionKind kind);

struct AttrSpec {
  std::string name;
  AttrValue
      default_value;  // its alternative is the attribute's kind; a None default accepts any kind
  bool required = false;  // then default_value only tells the kind
};

struct OpDef {
  std::string name;
  int min_args = 1;
  int max_args = 1;  // -1: any number. A tuple argument counts as one.
  std::vector<AttrSpec> attrs;
  FusionKind kind = FusionKind::kOpaque;
  // Returns the output type for argument types and normalised attributes. Shapes are checked here
  // alone; errors are kBadModel.
  std::function<Result<Type>(std::span<const Type> args, const Attrs& attrs)> infer_type;
  // Fills the outputs (allocated, one per leaf of the result type) from the inputs (tuple arguments
  // flattened), all plain row-major. Shapes and dtypes fit the type rule. Fails only on bad
  // run-time values (an index out of range).
  std::function<Status(std::span<const Tensor> inputs, const Attrs& attrs,
                       std::span<Tensor> outputs)>
      reference;
  // Empty: one operation per output element.
  std::function<double(std::span<const Type> args, const Attrs& attrs, const Type& result)> flops;
  // True if the call only renames the elements in row-major order (as reshape does): it needs no
  // kernel.
  bool is_view = false;
  // True if a call may have attributes beside `attrs`, of any kind.
  bool has_open_attrs = false;
  // The inputs that the first outputs start from, in order: such an output may lie where its input
  // does, and the kernel copies the input if it does not. Empty: none.
  std::function<std::vector<size_t>(const Attrs& attrs)> updates = {};

  // Returns `given` with defaults filled in; an error for an unknown attribute, a missing required
  // one or one of a wrong kind. An integer is accepted where a real or a one-element list is
  // expected.
  Result<Attrs> normalise(const Attrs& given) const;
};

// The registry holds every operator of src/ops once `register_all_ops()` (ops/registry.h) has run,
// and those that backends add. Registered definitions live for the rest of the process. Registering
// a name twice is a bug.
const OpDef& register_op(OpDef op);
const OpDef* find_op(std::string_view name);
std::vector<const OpDef*> all_ops();  // sorted by name

}  // namespace collage
