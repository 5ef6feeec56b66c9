// Tiny functions for tests of patterns, partitioning and search, written as text over made-up
// operators of every fusion kind. All tensors have the same type.
//
//   TinyFunction f("x; a = conv(x, c1); b = relu(a); t = tuple(a, b); return concat(t)");
//   f["b"]   ->  the expression
//
// A bare name declares a parameter; names that start with 'c' and were not assigned are constants.
// on_gpu(x) is x made on the device gpu:0, for_gpu(x) x used there. The returned expression is also
// named "result".
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/check.h"
#include "ir/expr.h"
#include "ir/op.h"

namespace collage {

// What made-up operators compute: numbers that depend on the operator, on every input and on its
// position, so that any wrong wire shows.
inline Status mix_inputs(float seed, std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  for (size_t k = 0; k < outputs.size(); ++k)
    for (int64_t i = 0; i < outputs[k].size(); ++i) {
      float value = seed + static_cast<float>(k);
      for (size_t j = 0; j < inputs.size(); ++j)
        value += inputs[j].data<float>()[i % inputs[j].size()] * (1.5f + static_cast<float>(j));
      outputs[k].data<float>()[i] = std::remainder(value, 10.f);
    }
  return {};
}

inline void register_tiny_ops() {
  static const bool done = [] {
    auto same = [](std::span<const Type> args, const Attrs&) -> Result<Type> {
      return args[0].is_tuple() ? args[0].fields()[0] : args[0];
    };
    auto pair = [](std::span<const Type> args, const Attrs&) -> Result<Type> {
      return Type::tuple({args[0], args[0]});
    };
    auto define = [](std::string name, int args, FusionKind kind, auto type, bool view = false) {
      OpDef op;
      op.name = std::move(name);
      op.min_args = 1;
      op.max_args = args;
      op.kind = kind;
      op.infer_type = type;
      op.is_view = view;
      op.attrs = {{"level", int64_t{0}}};
      op.reference = [seed = static_cast<float>(op.name[0] + 7 * op.name.size())](
                         std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
        return mix_inputs(seed, inputs, outputs);
      };
      register_op(std::move(op));
    };
    for (const char* name : {"relu", "exp", "tanh", "sigmoid"})
      define(name, 1, FusionKind::kElementwise, same);
    for (const char* name : {"add", "multiply", "subtract", "maximum"})
      define(name, 2, FusionKind::kBroadcast, same);
    define("transpose", 1, FusionKind::kInjective, same);
    define("concat", 1, FusionKind::kInjective, same);
    define("split", 1, FusionKind::kInjective, pair);
    define("reshape", 1, FusionKind::kInjective, same, true);
    define("sum", 1, FusionKind::kReduction, same);
    define("conv", 3, FusionKind::kAnchor, same);
    define("dense", 2, FusionKind::kAnchor, same);
    define("pool", 1, FusionKind::kAnchor, same);
    define("sort", 1, FusionKind::kOpaque, same);
    return true;
  }();
  (void)done;
}

class TinyFunction {
 public:
  explicit TinyFunction(const std::string& text) : function_(parse(text)) {}

  const Function& function() const { return function_; }
  const Expr& operator[](const std::string& name) const { return named_.at(name); }
  std::string name_of(const Expr& expr) const {  // "" when it has none
    for (const auto& [name, named] : named_)
      if (named == expr) return name;
    return "";
  }

 private:
  static std::string strip(std::string text) {
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
    return text;
  }

  Expr lookup(const std::string& name) {
    auto it = named_.find(name);
    if (it != named_.end()) return it->second;
    COLLAGE_CHECK(name[0] == 'c', "unknown name '{}'", name);
    return named_[name] = make_constant(Tensor::zeros(DType::kFloat32, {4}));
  }

  Expr expression(const std::string& text) {
    size_t open = text.find('('), dot = text.find('.');
    if (open == std::string::npos) {
      if (dot == std::string::npos) return lookup(text);
      return *make_tuple_get_item(lookup(text.substr(0, dot)), std::stoi(text.substr(dot + 1)));
    }
    std::vector<Expr> args;
    std::stringstream list(text.substr(open + 1, text.size() - open - 2));
    for (std::string arg; std::getline(list, arg, ',');) args.push_back(lookup(arg));
    std::string op = text.substr(0, open);
    if (op == "tuple") return make_tuple(args);
    if (op == "on_gpu" || op == "for_gpu")
      return *make_call("on_device", args,
                        {{"device", "gpu"},
                         {"constrain_body", op[1] == 'n'},
                         {"constrain_result", op[1] == 'o'}});
    return *make_call(op, args);
  }

  Function parse(const std::string& text) {
    register_tiny_ops();
    std::stringstream statements(text);
    std::vector<Expr> params;
    Expr body;
    for (std::string statement; std::getline(statements, statement, ';');) {
      size_t at = statement.find("return ");
      if (at != std::string::npos) {
        body = expression(strip(statement.substr(at + 7)));
        named_.emplace("result", body);
        continue;
      }
      statement = strip(statement);
      if (statement.empty()) continue;
      size_t equals = statement.find('=');
      if (equals == std::string::npos) {
        params.push_back(make_var(statement, TensorType{{4}, DType::kFloat32}));
        named_[statement] = params.back();
      } else {
        named_[statement.substr(0, equals)] = expression(statement.substr(equals + 1));
      }
    }
    return make_function(params, body);
  }

  std::map<std::string, Expr> named_;
  Function function_;
};

}  // namespace collage
