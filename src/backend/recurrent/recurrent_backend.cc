#include "backend/recurrent/recurrent_backend.h"

#include <algorithm>
#include <cstring>

#include "backend/fingerprint.h"
#include "backend/recurrent/kernels/layer_kernel.h"
#include "backend/recurrent/kernels/loaders.h"
#include "ir/visitor.h"
#include "ops/recurrent.h"
#include "partition/rules/op_predicate.h"
#include "runtime/huge_pages.h"
#include "runtime/shared_constants.h"

namespace collage {
namespace recurrent {
namespace {

const Tensor* constant_of(const Expr& expr) {
  const auto* constant = as<ConstantNode>(expr);
  return constant == nullptr ? nullptr : &constant->value;
}

Status check_lengths(const Expr& expr, int64_t steps) {
  const Tensor* lengths = constant_of(expr);
  if (lengths == nullptr) return unsupported("recurrent: sequences of any length");
  for (int64_t i = 0; i < lengths->size(); ++i)
    if (lengths->element_as_int64(i) != steps)
      return unsupported("recurrent: sequences of several lengths");
  return {};
}

Result<Layer> read_layer(const CallNode& call) {
  const RecurrentOp* op = call.op == nullptr ? nullptr : find_recurrent_op(call.op->name);
  if (op == nullptr) return unsupported("recurrent: no recurrent layer");
  const TensorType &data = call.args[0]->tensor_type(), &weights = call.args[2]->tensor_type();
  if (data.dtype != DType::kFloat32) return unsupported("recurrent: {}", data.to_string());
  for (const size_t i : {1, 2, 3})
    if (constant_of(call.args[i]) == nullptr)
      return unsupported("recurrent: weights that are no constants");
  if (call.args.size() > 7) return unsupported("recurrent: peepholes");
  if (call.attrs.real("clip") > 0) return unsupported("recurrent: a clip before activations");
  Layer layer;
  layer.gates = op->gates;
  layer.directions = recurrent_directions(call.attrs);
  layer.steps = data.shape[0];
  layer.batch = data.shape[1];
  layer.inputs = data.shape[2];
  layer.hidden = weights.shape[2];
  layer.reverse = call.attrs.string("direction") == "reverse";
  if (std::min({layer.steps, layer.batch, layer.inputs, layer.hidden}) < 1)
    return unsupported("recurrent: an empty tensor");
  TRY(check_lengths(call.args[4], layer.steps));
  if (layer.gates == 3 && !call.attrs.flag("linear_before_reset"))
    return unsupported("recurrent: a reset in front of the product");
  if (layer.gates == 4 && call.attrs.flag("input_forget"))
    return unsupported("recurrent: input_forget");
  const std::vector<RecurrentActivation> found = TRY(recurrent_activations(*op, call.attrs));
  layer.relu = layer.gates == 1 && found[0].function->name == "relu";
  for (size_t i = 0; i < found.size(); ++i)
    if (const std::string_view name = found[i].function->name;
        name != (layer.relu ? "relu" : op->activations[i % op->activations.size()]))
      return unsupported("recurrent: activation {}", name);
  return layer;
}

/// The one call, and the layer that it is; the parameters are its data and states, in their order.
struct Parsed {
  Layer layer;
  const CallNode* call;
  Function flat;  ///< holds the call
};

Result<Parsed> parse(const Function& function) {
  const Function flat = TRY(inline_calls(function));
  const auto* call = as<CallNode>(flat->body);
  if (call == nullptr) return unsupported("recurrent: no call");
  const Layer layer = TRY(read_layer(*call));
  std::vector<Expr> wanted = {call->args[0]};
  for (const size_t i : {5, 6})
    if (i < call->args.size() && constant_of(call->args[i]) == nullptr)
      wanted.push_back(call->args[i]);
  if (!std::equal(wanted.begin(), wanted.end(), flat->params.begin(), flat->params.end()))
    return unsupported("recurrent: parameters in another order");
  return Parsed{layer, call, flat};
}

Result<SharedBytes> packed_constants(const CallNode& call, const Layer& layer) {
  const int64_t rows = layer.gates * layer.hidden;
  const size_t bytes = static_cast<size_t>(layer.packed_floats()) * sizeof(float);
  std::shared_ptr<void> memory = TRY(allocate_on_huge_pages(bytes));  // zeros
  auto* to = static_cast<float*>(memory.get());
  const auto* weight = constant_of(call.args[1])->data<float>();
  const auto* recurrence = constant_of(call.args[2])->data<float>();
  const auto* bias = constant_of(call.args[3])->data<float>();
  for (int64_t d = 0; d < layer.directions; ++d)
    for (int64_t unit = 0; unit < layer.padded(); unit += kPanel, to += layer.packed()) {
      const int64_t count = std::min(kPanel, layer.hidden - unit);
      // A row of the panel for each column of a matrix.
      const auto pack = [&](const float* matrix, int64_t columns, float* panel) {
        for (int64_t g = 0; g < layer.gates; ++g)
          for (int64_t u = 0; u < count; ++u) {
            const float* row = matrix + (d * rows + g * layer.hidden + unit + u) * columns;
            for (int64_t k = 0; k < columns; ++k)
              panel[k * layer.width() + g * kPanel + u] = row[k];
          }
      };
      pack(weight, layer.inputs, to);
      pack(recurrence, layer.hidden, to + layer.inputs * layer.width());
      float* begins = to + (layer.inputs + layer.hidden) * layer.width();
      for (int64_t g = 0; g < layer.gates; ++g)
        for (int64_t u = 0; u < count; ++u) {
          const float* own = bias + 2 * d * rows + g * layer.hidden + unit + u;
          const bool candidate = layer.gates == 3 && g == 2;
          begins[g * kPanel + u] = candidate ? own[0] : own[0] + own[rows];
          if (candidate) begins[layer.width() + u] = own[rows];
        }
    }
  return shared_constant({std::move(memory), bytes});
}

Result<SharedBytes> kept_state(const CallNode& call, size_t argument) {
  if (argument >= call.args.size()) return SharedBytes{};
  const Tensor* state = constant_of(call.args[argument]);
  if (state == nullptr) return SharedBytes{};
  std::shared_ptr<void> copy = TRY(allocate_on_huge_pages(state->bytes()));
  std::memcpy(copy.get(), state->raw(), state->bytes());
  return SharedBytes{std::move(copy), state->bytes()};
}

Variant variant_of(const Function& function, bool wide) {
  Variant variant = Variant::plain(wide ? "avx512" : "avx2", function);
  variant.weights = "recurrent panels";
  return variant;
}

class RecurrentBackend : public Backend {
 public:
  RecurrentBackend()
      : Backend("recurrent", [] {
          return BackendTraits{.version = source_fingerprint("recurrent"),
                               .priority = 25,
                               .kernels = {{.name = "panels",
                                            .computes = "recurrent layers",
                                            .isa = "AVX2, or AVX-512",
                                            .tile = "instructions"}}};
        }) {}
  Status available() const override {
    if (panel_code(1, false) != nullptr) return {};
    return error(ErrorCode::kUnavailable, "recurrent: needs AVX2 and FMA");
  }
  PartitionRulePtr partition_rule(const Target&) const override {
    return std::make_shared<OpPredicatePartitionRule>(
        "recurrent", [](const CallNode& call) { return read_layer(call).ok(); });
  }
  Result<std::vector<Variant>> variants(const Function& function, const Target&,
                                        const CompileOptions&) const override {
    TRY(parse(function));
    std::vector<Variant> list = {variant_of(function, false)};
    if (panel_code(1, true) != nullptr) list.insert(list.begin(), variant_of(function, true));
    return list;
  }
  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&,
                                          const CompileOptions& options) const override {
    const Parsed parsed = TRY(parse(function));
    const bool wide = variant == variant_of(function, true);
    if (!wide && !(variant == variant_of(function, false)))
      return unsupported("recurrent: no variant {}", variant.to_string());
    return make_layer_kernel({parsed.layer, wide, TRY(packed_constants(*parsed.call, parsed.layer)),
                              TRY(kept_state(*parsed.call, 5)), TRY(kept_state(*parsed.call, 6))},
                             options.threads);
  }
};

}  // namespace
}  // namespace recurrent

std::unique_ptr<Backend> make_recurrent_backend() {
  recurrent::register_loaders();
  return std::make_unique<recurrent::RecurrentBackend>();
}

}  // namespace collage
