#include "backend/opencl/kernel_builder.h"

#include <algorithm>

#include "backend/native/codegen/real_limits.h"
#include "backend/native/kernel_group.h"
#include "backend/opencl/lookup.h"
#include "backend/opencl/packed_constants.h"
#include "backend/opencl/prepare.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "tensor_program/call.h"
#include "tensor_program/emit/collapse.h"
#include "tensor_program/term_walk.h"

namespace collage::opencl {
namespace {

namespace tp = tensor_program;

constexpr int64_t kMostElements = int64_t{1} << 29;
constexpr int kOperandSlot = 1 << 16;  // of values that are stored because a product reads them

/// What devices without extensions compute with, within what 32 bits can index.
Status check_type(const Type& type) {
  for (const TensorType& leaf : type.leaves()) {
    if (leaf.dtype == DType::kFloat64 || leaf.dtype == DType::kFloat16 ||
        leaf.dtype == DType::kBFloat16)
      return unsupported("opencl: no kernels of {}", dtype_name(leaf.dtype));
    const int64_t elements = num_elements(leaf.shape);
    if (elements == 0) return unsupported("opencl: an empty tensor");
    if (elements > kMostElements) return unsupported("opencl: a tensor of {} elements", elements);
  }
  return {};
}

/// What native refuses, in this backend's name.
Status as_own(const Status& status) {
  constexpr std::string_view other = "native: ";
  if (status.ok() || !status.message().starts_with(other)) return status;
  return error(status.code(), "opencl: {}", status.message().substr(other.size()));
}

/// Views of parameters and constants are read where they lie.
bool lies_in_memory(const Expr& node) {
  const auto* call = as<CallNode>(node);
  if (call == nullptr) return node->kind() != ExprKind::kTupleGetItem;
  return call->op->is_view && lies_in_memory(call->args[0]);
}

tp::Term value_of(tp::Emitter& emitter, const CallNode& call, const tp::Coords& at) {
  if (is_lookup(call)) return lookup(emitter, call, at);
  return tp::find_emit_rule(call.op->name)->emit(emitter, call, 0, at);
}

void bind_lookups(tp::Emitter& emitter, const std::vector<Expr>& order) {
  for (const Expr& node : order) {
    const auto* call = as<CallNode>(node);
    if (call != nullptr && is_lookup(*call))
      emitter.bind(node,
                   [&emitter, call](const tp::Coords& at) { return lookup(emitter, *call, at); });
  }
}

/// What sums read many times is computed once: by a stage of its own.
void store_operands(tp::Emitter& emitter, const std::vector<Expr>& order) {
  std::vector<const ExprNode*> read;
  for (const Expr& node : order)
    if (const CallNode* sum = sum_of(node))
      for (const Expr& arg : sum->args)
        if (!lies_in_memory(arg)) read.push_back(arg.get());
  for (const Expr& node : order) {
    const auto* call = as<CallNode>(node);
    if (call == nullptr || std::find(read.begin(), read.end(), node.get()) == read.end()) continue;
    const TensorType& type = call->tensor_type();
    const tp::Stored& stored =
        emitter.store(*call, kOperandSlot, type.shape,
                      [&](const tp::Coords& at) { return value_of(emitter, *call, at); });
    emitter.bind(node, [name = stored.total, dtype = stored.dtype](const tp::Coords& at) {
      return tp::load(name, dtype, at.logical);
    });
  }
}

/// The result tensors; what is but a view of the only one is the same bytes.
Result<std::vector<Expr>> results_of(const Function& function) {
  const Expr& body = function->body;
  if (const auto* tuple = as<TupleNode>(body)) return tuple->fields;
  std::vector<Expr> results;
  if (!body->type().is_tensor()) {
    for (size_t i = 0; i < body->type().fields().size(); ++i)
      results.push_back(TRY(make_tuple_get_item(body, static_cast<int64_t>(i))));
    return results;
  }
  results.push_back(body);
  for (;;) {
    const auto* call = as<CallNode>(results[0]);
    if (call == nullptr || call->op == nullptr || !call->op->is_view) return results;
    const Expr inner = call->args[0];
    results[0] = inner;
  }
}

void add_result(tp::Emitter& emitter, const Expr& result, const std::string& name) {
  const TensorType& type = result->tensor_type();
  tp::Stage out;
  out.name = name;
  out.dtype = type.dtype;
  out.axes = tp::numbered_axes("axis", type.shape);
  out.is_result = true;
  out.value = emitter.value(result, {out.indices(), {}, {}});
  emitter.program().stages.push_back(std::move(out));
}

/// A function as stages, not yet scheduled.
struct Emitted {
  Function function;
  std::unique_ptr<tp::Emitter> emitter;
  std::vector<Expr> results;
};

Result<Emitted> emitted(const Function& flat, const Tile& tile) {
  Emitted made;
  made.function = TRY(prepared(tensor_program::collapse_dims(flat, 0)));
  made.emitter = std::make_unique<tp::Emitter>(
      made.function, std::vector(made.function->params.size(), tp::ChannelLayout::kPlain), false);
  const std::vector<Expr> order = post_order(made.function->body);
  bind_lookups(*made.emitter, order);
  pack_constants(*made.emitter, order, tile);
  store_operands(*made.emitter, order);
  made.results = TRY(results_of(made.function));
  for (size_t i = 0; i < made.results.size(); ++i)
    add_result(*made.emitter, made.results[i], "result" + std::to_string(i));
  return made;
}

}  // namespace

Status check_call(const CallNode& call) {
  if (call.op == nullptr) return unsupported("opencl: a call of a function");
  if (call.op->name == tp::kCallOp) return unsupported("opencl: a call of a tensor program");
  if (call.op->kind == FusionKind::kOpaque)
    return unsupported("opencl: no kernels for {}", call.op->name);
  if (!is_lookup(call)) TRY(as_own(native::check_call(call)));
  TRY(check_type(call.type()));
  for (const Expr& arg : call.args) TRY(check_type(arg->type()));
  return is_lookup(call) ? check_lookup(call) : Status();
}

Status check_function(const Function& flat) {
  for (const Expr& node : post_order(flat->body)) {
    const auto* call = as<CallNode>(node);
    TRY(call != nullptr ? check_call(*call) : check_type(node->type()));
  }
  const Type result = flat->result_type();
  if (result.is_tensor()) return {};
  for (const Type& field : result.fields())
    if (!field.is_tensor()) return unsupported("opencl: a nested result");
  return {};
}

Result<std::vector<Tile>> tiles_of(const Function& flat, bool on_cpu) {
  const std::vector<Expr> order = post_order(flat->body);
  const auto holds = [&](const auto& is_wanted) {
    return std::any_of(order.begin(), order.end(), [&](const Expr& node) {
      const CallNode* sum = sum_of(node);
      return sum != nullptr && is_wanted(*sum);
    });
  };
  if (holds([](const CallNode&) { return true; })) {
    std::vector<Tile> tiles = sum_tiles(on_cpu);
    std::erase_if(tiles, [&](const Tile& tile) {
      return tile.across &&
             !holds([&](const CallNode& sum) { return has_whole_lanes(sum, tile.lanes); });
    });
    return tiles;
  }
  std::vector<Tile> tiles = plain_tiles();
  const Emitted program = TRY(emitted(flat, {}));
  if (!has_long_rows(*program.emitter))
    std::erase_if(tiles, [](const Tile& tile) { return tile.group_a_row; });
  return tiles;
}

Result<bool> holds_exponentials(const Function& flat) {
  const Emitted program = TRY(emitted(flat, {}));
  bool holds = false;
  for (const tp::Stage& stage : program.emitter->program().stages)
    tp::for_each_term(stage, [&](const tp::Term& root) {
      tp::for_each_inside(root, [&](const tp::Term& term) {
        holds = holds || term->op == tp::TermOp::kExp || term->op == tp::TermOp::kExpm1 ||
                term->op == tp::TermOp::kLog || term->op == tp::TermOp::kLog1p ||
                term->op == tp::TermOp::kPower;
      });
    });
  return holds;
}

Result<native::BuiltKernel> build_kernel(const Function& flat, const Tile& tile) {
  const Emitted program = TRY(emitted(flat, tile));
  tp::Emitter& emitter = *program.emitter;
  native::Translator translator(emitter.program());
  std::vector<Halide::Func> outputs;
  for (const std::string& name : emitter.program().results())
    outputs.push_back(translator.func(name));
  schedule(emitter, translator, tile);
  native::BuiltKernel built;
  built.bindings = std::move(translator.bindings());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Shape& shape = program.results[i]->tensor_type().shape;
    built.result_extents.emplace_back(shape.rbegin(), shape.rend());
    native::fix_dense(outputs[i].output_buffer(), built.result_extents.back());
    built.result_types.push_back(outputs[i].types()[0]);
  }
  built.pipeline = Halide::Pipeline(outputs);
  native::lower_limits(built.pipeline);
  return built;
}

}  // namespace collage::opencl
