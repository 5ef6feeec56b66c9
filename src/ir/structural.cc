#include "ir/structural.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "ir/op.h"
#include "ir/visitor.h"

namespace collage {

namespace {

// Nesting of function literals inside `function`, itself included. A parameter is identified by its
// function's height and its position: both are independent of where the function stands, and no two
// functions around one expression have one height.
class Heights {
 public:
  size_t of(const FunctionNode* function) {
    auto it = memo_.find(function);
    if (it != memo_.end()) return it->second;
    size_t height = 0;
    for (const Expr& expr : post_order(function->body))
      if (const auto* inner = as<FunctionNode>(expr)) height = std::max(height, of(inner));
    return memo_[function] = height + 1;
  }

 private:
  std::unordered_map<const FunctionNode*, size_t> memo_;
};

void put(std::string& key, size_t value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put(std::string& key, std::string_view text) {
  put(key, text.size());
  key += text;
}
void put(std::string& key, const Attrs& attrs, std::string_view left_out = {}) {
  for (const auto& [name, value] : attrs.entries()) {
    if (name == left_out) continue;
    put(key, name);
    put(key, value.index());
    put(key, attr_to_string(value));
  }
}

// A hash of the values; of large tensors samples do, so that weights need not be read whole.
size_t bytes_hash(const Tensor& tensor) {
  constexpr size_t kWhole = 4096, kSamples = 64;
  std::string_view bytes(static_cast<const char*>(tensor.raw()), tensor.bytes());
  std::hash<std::string_view> hash;
  if (bytes.size() <= kWhole) return hash(bytes);
  size_t result = bytes.size(), step = bytes.size() / kSamples;
  for (size_t i = 0; i < kSamples; ++i)
    result = hash_combine(result, hash(bytes.substr(i * step, 32)));
  return result;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.raw() == b.raw() || a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

// Walks expressions bottom-up and gives each a number from the key of what it is and its inputs'
// numbers. How a key or a constant becomes a number is the derived class's: a fresh number from a
// table, or a hash.
class Walk {
 public:
  virtual ~Walk() = default;

  size_t number(const Expr& root) {
    // No further than to what has a number: who numbers a graph node by node walks it once.
    std::vector<Expr> todo = {root};
    while (!todo.empty()) {
      const Expr expr = todo.back();
      if (memo_.count(expr.get()) == 0) {
        const size_t before = todo.size();
        for (Expr& input : expr_inputs(expr))
          if (memo_.count(input.get()) == 0) todo.push_back(std::move(input));
        if (todo.size() > before) continue;
        const size_t result = compute(expr);
        memo_[expr.get()] = result;
        keep_.push_back(expr);
      }
      todo.pop_back();
    }
    return memo_.at(root.get());
  }

 protected:
  virtual size_t from_key(std::string key) = 0;
  virtual size_t from_constant(const Tensor& value) = 0;
  virtual size_t from_free_var(const Expr& var) = 0;

 private:
  size_t compute(const Expr& expr) {
    std::string key(1, static_cast<char>('0' + static_cast<int>(expr->kind())));
    switch (expr->kind()) {
      case ExprKind::kVar:
        return from_free_var(expr);
      case ExprKind::kConstant:
        return from_constant(as<ConstantNode>(expr)->value);
      case ExprKind::kGlobalVar:
        put(key, as<GlobalVarNode>(expr)->name);
        break;
      case ExprKind::kCall: {
        const auto* call = as<CallNode>(expr);
        put(key, call->op != nullptr ? call->op->name : "");
        put(key, call->attrs, kNameAttribute);
        break;
      }
      case ExprKind::kTupleGetItem:
        put(key, static_cast<size_t>(as<TupleGetItemNode>(expr)->index));
        break;
      case ExprKind::kTuple:
        break;
      case ExprKind::kFunction: {
        const auto* function = as<FunctionNode>(expr);
        size_t height = heights_.of(function);
        put(key, function->params.size());
        for (size_t i = 0; i < function->params.size(); ++i) {
          const Expr& param = function->params[i];
          std::string param_key("p");
          put(param_key, height);
          put(param_key, i);
          put(param_key, param->type().to_string());
          memo_[param.get()] = from_key(std::move(param_key));
          keep_.push_back(param);
          put(key, param->type().to_string());
        }
        put(key, function->attrs);
        put(key, number(function->body));
        break;
      }
    }
    for (const Expr& input : expr_inputs(expr)) put(key, memo_.at(input.get()));
    return from_key(std::move(key));
  }

  Heights heights_;
  std::unordered_map<const ExprNode*, size_t> memo_;
  std::vector<Expr> keep_;  // so that an address in memo_ is never reused
};

class Numbers : public Walk {
 protected:
  size_t from_key(std::string key) override {
    return numbers_.emplace(std::move(key), next()).first->second;
  }
  size_t from_constant(const Tensor& value) override {
    // Equal storage is found without reading the bytes.
    for (const auto& [tensor, number] : by_address_[value.raw()])
      if (same_bytes(tensor, value)) return number;
    size_t hash = hash_combine(bytes_hash(value), static_cast<size_t>(value.dtype()));
    size_t number = 0;
    for (const auto& [tensor, known] : by_hash_[hash])
      if (same_bytes(tensor, value)) number = known;
    if (number == 0) {
      number = next();
      by_hash_[hash].push_back({value, number});
    }
    by_address_[value.raw()].push_back({value, number});
    return number;
  }
  size_t from_free_var(const Expr&) override { return next(); }

 private:
  size_t next() { return ++count_; }
  using Known = std::vector<std::pair<Tensor, size_t>>;
  size_t count_ = 0;
  std::unordered_map<std::string, size_t> numbers_;
  std::unordered_map<const void*, Known> by_address_;
  std::unordered_map<size_t, Known> by_hash_;
};

}  // namespace

struct ValueNumbering::State : Numbers {};
ValueNumbering::ValueNumbering() : state_(std::make_unique<State>()) {}
ValueNumbering::~ValueNumbering() = default;
size_t ValueNumbering::number(const Expr& expr) { return state_->number(expr); }

bool structural_equal(const Expr& a, const Expr& b) {
  if (a == b) return true;
  ValueNumbering numbers;
  return numbers.number(a) == numbers.number(b);
}

bool structural_equal(const Module& a, const Module& b) {
  if (a.functions.size() != b.functions.size() ||
      a.abstract_functions.size() != b.abstract_functions.size() ||
      a.external_mods.size() != b.external_mods.size())
    return false;
  ValueNumbering numbers;
  for (const auto& [name, function] : a.functions) {
    auto it = b.functions.find(name);
    if (it == b.functions.end() || numbers.number(function) != numbers.number(it->second))
      return false;
  }
  for (const auto& [name, function] : a.abstract_functions) {
    auto it = b.abstract_functions.find(name);
    if (it == b.abstract_functions.end() || function->kind_name() != it->second->kind_name() ||
        !(function->type() == it->second->type()) || function->to_text() != it->second->to_text())
      return false;
  }
  for (const auto& [symbol, mod] : a.external_mods) {
    auto it = b.external_mods.find(symbol);
    if (it == b.external_mods.end() || mod.target != it->second.target ||
        mod.variant != it->second.variant ||
        numbers.number(mod.code) != numbers.number(it->second.code))
      return false;
  }
  return true;
}

}  // namespace collage
