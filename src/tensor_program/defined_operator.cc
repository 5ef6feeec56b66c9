#include "tensor_program/defined_operator.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <mutex>

#include "base/printable.h"
#include "ir/visitor.h"
#include "tensor_program/call.h"
#include "tensor_program/external.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

struct DefinedRegistry {
  std::mutex mutex;
  std::deque<DefinedOperator> operators;  // addresses stay
};
DefinedRegistry& definitions() {
  static auto* all = new DefinedRegistry;
  return *all;
}

template <typename Predicate>
const DefinedOperator* find_if(const Predicate& predicate) {
  std::lock_guard lock(definitions().mutex);
  for (const DefinedOperator& op : definitions().operators)
    if (predicate(op)) return &op;
  return nullptr;
}

bool is_name(std::string_view name) {
  return !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) != 0 &&
         name.find('.') != std::string_view::npos && name.back() != '.' &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; });
}

/// Of the operator call.h's that the call stands for.
Result<Attrs> call_attrs(const DefinedOperator& op, std::span<const Type> args,
                         const Attrs& attrs) {
  const Symbols extents = TRY(op.program.bind(args, attrs));
  const Program program = TRY(parse_program(TRY(op.program.text_for(extents, attrs))));
  return tensor_program::call_attrs(program, "");
}

void add_op(const DefinedOperator& defined) {
  const OpDef& call = *find_op(kCallOp);
  OpDef op;
  op.name = defined.definition.name;
  op.min_args = op.max_args = static_cast<int>(defined.program.params());
  op.attrs = defined.program.attributes();
  op.infer_type = [&](std::span<const Type> args, const Attrs& attrs) -> Result<Type> {
    return call.infer_type(args, TRY(call_attrs(defined, args, attrs)));
  };
  op.reference = [&](std::span<const Tensor> inputs, const Attrs& attrs,
                     std::span<Tensor> outputs) -> Status {
    std::vector<Type> types;
    for (const Tensor& input : inputs) types.emplace_back(TensorType{input.shape(), input.dtype()});
    return call.reference(inputs, TRY(call_attrs(defined, types, attrs)), outputs);
  };
  op.flops = [&](std::span<const Type> args, const Attrs& attrs, const Type& result) -> double {
    const Result<Attrs> called = call_attrs(defined, args, attrs);
    return called ? call.flops(args, *called, result) : 0;
  };
  register_op(std::move(op));
}

Result<OpCase> make_case(const DefinedOperator& op, const std::map<std::string, int64_t>& sizes) {
  OpCase made;
  made.op = op.definition.name;
  Symbols extents;
  for (const std::string& extent : op.program.extents()) {
    if (sizes.count(extent) == 0) return bad_model("a case without {}", extent);
    extents[extent] = sizes.at(extent);
  }
  for (const AttrSpec& attribute : op.program.attributes()) {
    AttrValue value = attribute.default_value;
    if (const auto given = sizes.find(attribute.name); given != sizes.end()) {
      if (!std::holds_alternative<int64_t>(value))
        return bad_model("{} is no attribute of type int64", attribute.name);
      value = given->second;
    } else if (attribute.required) {
      value = std::holds_alternative<int64_t>(value) ? AttrValue(int64_t{1}) : AttrValue(0.5);
    }
    made.attrs.set(attribute.name, value);
  }
  for (const auto& [name, size] : sizes)
    if (extents.count(name) == 0 && !made.attrs.has(name))
      return bad_model("a case of '{}', which is no symbol", printable(name));
  for (TensorType& type : TRY(op.program.types_of_params(extents, made.attrs)))
    made.args.push_back({std::move(type)});
  TRY(build_case(made, 1));
  return made;
}

}  // namespace

bool is_node_name(std::string_view name) {
  const size_t colons = name.find("::");
  return colons != std::string_view::npos && colons + 2 < name.size() &&
         name.find(':', colons + 2) == std::string_view::npos;
}

Status define(const OperatorDefinition& definition) {
  const std::string& name = definition.name;
  if (!is_name(name))
    return usage_error("'{}' is no operator's name: \"mine.name\"", printable(name));
  if (!definition.onnx.empty() && !is_node_name(definition.onnx))
    return usage_error("'{}' is no node's name: \"domain::Operator\"", printable(definition.onnx));
  SymbolicProgram program =
      TRY(SymbolicProgram::parse(definition.program).with_context("operator " + name));
  static std::mutex one_at_a_time;
  std::lock_guard defining(one_at_a_time);
  if (const DefinedOperator* same = find_defined(name)) {
    const OperatorDefinition& old = same->definition;
    if (old.onnx == definition.onnx && old.program == definition.program &&
        old.cases == definition.cases)
      return {};
    return usage_error("operator {} is defined already", name);
  }
  if (find_op(name) != nullptr) return usage_error("operator {} exists already", name);
  if (!definition.onnx.empty() && find_external_node(definition.onnx) != nullptr)
    return usage_error("{} means function {} already", definition.onnx,
                       find_external_node(definition.onnx)->label);
  const DefinedOperator* defined = nullptr;
  {
    std::lock_guard lock(definitions().mutex);
    for (const DefinedOperator& other : definitions().operators)
      if (!definition.onnx.empty() && other.definition.onnx == definition.onnx)
        return usage_error("{} means operator {} already", definition.onnx, other.definition.name);
    defined =
        &definitions().operators.emplace_back(DefinedOperator{definition, std::move(program)});
  }
  add_op(*defined);
  return {};
}

const DefinedOperator* find_defined(std::string_view name) {
  return find_if([&](const DefinedOperator& op) { return op.definition.name == name; });
}

const DefinedOperator* find_defined_node(std::string_view node) {
  return find_if([&](const DefinedOperator& defined) { return defined.definition.onnx == node; });
}

Result<std::vector<OpCase>> cases_of(const DefinedOperator& op) {
  std::vector<OpCase> cases;
  for (const auto& sizes : op.definition.cases)
    cases.push_back(TRY(make_case(op, sizes).with_context("operator " + op.definition.name)));
  if (!cases.empty()) return cases;
  // Odd ones, whole vectors and blocks, single elements; in turns, so that extents differ.
  constexpr int64_t kSizes[][4] = {{3, 5, 2, 7}, {16, 32, 8, 4}, {1, 1, 1, 1}, {17, 33, 9, 3}};
  Status refused;
  for (const auto& choice : kSizes) {
    std::map<std::string, int64_t> sizes;
    for (size_t i = 0; i < op.program.extents().size(); ++i)
      sizes[op.program.extents()[i]] = choice[i % std::size(choice)];
    Result<OpCase> made = make_case(op, sizes);
    if (made) {
      cases.push_back(std::move(made).value());
    } else {
      refused = made.status();
    }
  }
  if (cases.empty())
    return std::move(refused).with_context(
        fmt::format("operator {}: no case was given, and none made up fits", op.definition.name));
  return cases;
}

Result<Function> expand_defined(const Function& function) {
  Rewriter rewriter([](const Expr&, const Expr& rebuilt) -> Result<Expr> {
    const auto* call = as<CallNode>(rebuilt);
    if (call == nullptr || call->op == nullptr) return rebuilt;
    const DefinedOperator* op = find_defined(call->op->name);
    if (op == nullptr) return rebuilt;
    std::vector<Type> types;
    for (const Expr& arg : call->args) types.push_back(arg->type());
    return make_call(kCallOp, call->args, TRY(call_attrs(*op, types, call->attrs)), call->origin());
  });
  return rewriter.rewrite(function);
}

}  // namespace collage::tensor_program
