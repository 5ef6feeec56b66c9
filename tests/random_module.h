// Random modules as Relay text, each the same for every value of its symbols n and m: functions and
// tensor programs called by name, nested tuples, control flow, and placements on devices.
//
//   RandomModule(7).text()                              over symbols
//   RandomModule(7, {.values = Sizes{3, 5}}).text()     the same module, of numbers
//
// Values stay within a few hundreds, so what compiled kernels give can be compared.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace collage::testing {

struct Sizes {
  int64_t n = 1, m = 1;
};

struct RandomModuleOptions {
  std::optional<Sizes> values = std::nullopt;  // none: text over symbols
  bool programs = true, control = true;
  size_t most_functions = 2;             // called by name, besides @main
  size_t most_steps = 8;                 // of @main; others have half as many
  std::vector<std::string> places = {};  // constraints that on_device and device_copy state
};

class RandomModule {
 public:
  explicit RandomModule(uint64_t seed, RandomModuleOptions options = {})
      : rng_(seed), options_(std::move(options)) {}

  std::string text() {
    std::string text;
    if (options_.programs)
      for (size_t i = below(3); i > 0; --i) text += program();
    for (size_t i = below(options_.most_functions + 1); i > 0; --i) text += function();
    Scope scope = {{"%x", matrix()}, {"%y", matrix()}, {"%r", row()}, {"%z", terms()}};
    const std::string body = steps(scope, 1 + below(options_.most_steps), true);
    text += "def @main(%x: " + type_text(matrix()) + ", %y: " + type_text(matrix()) +
            ", %r: " + type_text(row()) + ", %z: " + type_text(scope[3].second);
    if (options_.control) text += ", %trips: int64, %go: bool";
    return text + ") {\n" + body + "  (" + scope.back().first + ", " + any_tensor(scope).first +
           (below(2) == 0 ? ", " + scope[below(scope.size())].first : "") + ")\n}\n";
  }

 private:
  struct Dim {
    std::string text;  // a term
    int64_t value;     // of the options' sizes
  };
  struct Type {
    std::vector<Dim> shape;
    std::vector<Type> fields = {};
    bool is_tuple = false;
  };
  using Value = std::pair<std::string, Type>;
  using Scope = std::vector<Value>;
  struct Callee {
    std::string name;
    std::vector<Type> params;
    Type result;
  };

  size_t below(size_t count) { return rng_() % count; }
  std::string any(std::initializer_list<const char*> of) {
    return *(of.begin() + below(of.size()));
  }
  Dim n() const { return {"n", options_.values.value_or(Sizes()).n}; }
  Dim m() const { return {"m", options_.values.value_or(Sizes()).m}; }
  Type matrix() const { return {{n(), m()}}; }
  Type row() const { return {{m()}}; }
  Type terms() {
    const Dim dims[] = {{"2 * m + 1", 2 * m().value + 1}, {"3", 3}, n()};
    const Dim first = dims[below(3)], second = dims[below(3)];
    return {{first, second, m()}};
  }
  static Type tuple(std::vector<Type> fields) { return {{}, std::move(fields), true}; }

  std::string text_of(const Dim& dim) const {
    return options_.values ? std::to_string(dim.value) : dim.text;
  }
  std::string dims_text(const std::vector<Dim>& dims) const {
    std::string text;
    for (const Dim& dim : dims) text += (text.empty() ? "" : ", ") + text_of(dim);
    return text;
  }
  std::string type_text(const Type& type) const {
    if (!type.is_tuple) return "Tensor[(" + dims_text(type.shape) + "), float32]";
    std::string text;
    for (const Type& field : type.fields) text += (text.empty() ? "" : ", ") + type_text(field);
    return "(" + text + ")";
  }
  // Types are the same for all sizes if these are.
  static std::string key(const Type& type) {
    std::string text = type.is_tuple ? "(" : "[";
    for (const Dim& dim : type.shape) text += dim.text + ",";
    for (const Type& field : type.fields) text += key(field) + ",";
    return text + ")";
  }

  // Adds a binding to the body that is under way.
  const Value& bind(Scope& scope, const std::string& value, Type type) {
    const std::string name = "%" + std::to_string(next_++);
    body_ += "  " + name + " = " + value + ";\n";
    scope.emplace_back(name, std::move(type));
    return scope.back();
  }
  static void add_leaves(const Value& value, Scope& leaves) {
    if (!value.second.is_tuple) leaves.push_back(value);
    for (size_t i = 0; i < value.second.fields.size(); ++i)
      add_leaves({value.first + "." + std::to_string(i), value.second.fields[i]}, leaves);
  }
  static Scope leaves_of(const Scope& scope) {
    Scope leaves;
    for (const Value& value : scope) add_leaves(value, leaves);
    return leaves;
  }
  // Recent ones more often, so that graphs are deep too.
  Value pick(const Scope& from) {
    return from[below(3) == 0 ? below(from.size())
                              : from.size() - 1 - below(std::min<size_t>(from.size(), 4))];
  }
  Value any_tensor(const Scope& scope) { return pick(leaves_of(scope)); }
  // An expression of that type; every scope has a matrix.
  std::string of_type(const Scope& scope, const Type& type) {
    Scope same;
    for (const Value& value : scope)
      if (key(value.second) == key(type)) same.push_back(value);
    if (type.is_tuple && (same.empty() || below(2) == 0)) {
      std::string text;
      for (const Type& field : type.fields)
        text += (text.empty() ? "" : ", ") + of_type(scope, field);
      return "(" + text + ")";
    }
    if (!type.is_tuple)
      for (const Value& leaf : leaves_of(scope))
        if (key(leaf.second) == key(type)) same.push_back(leaf);
    return same.empty() ? "max(" + of_type(scope, matrix()) + ", axis=[0])" : pick(same).first;
  }
  // What may be handed to functions.
  Type any_type() {
    const Type pair = tuple({row(), matrix()});
    const Type types[] = {matrix(), matrix(), row(), pair, tuple({pair, row()})};
    return types[below(std::size(types))];
  }
  std::string arguments(const Scope& scope, const std::vector<Type>& types) {
    std::string text;
    for (const Type& type : types) text += (text.empty() ? "" : ", ") + of_type(scope, type);
    return text;
  }

  // A term of a tensor program over i:n and j:m.
  std::string term(size_t depth) {
    if (depth == 0)
      return any({"A[i, j]", "A[i, j]", "B[j]", "M[i]", "0.5f", "A[n - 1 - i, m - 1 - j]"});
    const std::string a = term(depth - 1), b = term(below(depth));
    switch (below(5)) {
      case 0:
        return "(" + a + " + " + b + ")";
      case 1:
        return "(" + a + " - " + b + ")";
      case 2:
        return "tanh(" + a + ") * tanh(" + b + ")";
      case 3:
        return "max(" + a + ", " + b + ")";
      default:
        return "tanh(" + a + ")";
    }
  }
  std::string program() {
    const std::string name = "@program" + std::to_string(callees_.size());
    const bool two = below(2) == 0;
    std::string text = "program " + name +
                       " {\n  param A: float32[n, m];\n  param B: float32[m];\n" +
                       "  stage M[i:n] = " + any({"max", "min"}) + "(k:m) A[i, k] - B[k];\n" +
                       "  result C[i:n, j:m] = M[i] * 0.5f + " + term(3) + ";\n";
    if (two) text += "  result D[j:m] = tanh(B[j]);\n";
    callees_.push_back({name, {matrix(), row()}, two ? tuple({matrix(), row()}) : matrix()});
    text += "}\n";
    if (!options_.values) return text;
    std::string numbers;
    for (size_t i = 0; i < text.size(); ++i) {
      const bool is_word = (i > 0 && std::isalnum(text[i - 1])) || std::isalnum(text[i + 1]);
      const char c = text[i];
      numbers += is_word || (c != 'n' && c != 'm')
                     ? std::string(1, c)
                     : std::to_string(c == 'n' ? n().value : m().value);
    }
    return numbers;
  }

  std::string function() {
    const std::string name = "@function" + std::to_string(callees_.size());
    Callee callee{name, {matrix()}, {}};
    for (size_t i = below(3); i > 0; --i) callee.params.push_back(any_type());
    Scope scope;
    std::string params;
    for (size_t i = 0; i < callee.params.size(); ++i) {
      scope.emplace_back("%p" + std::to_string(i), callee.params[i]);
      params += (i > 0 ? ", " : "") + scope.back().first + ": " + type_text(callee.params[i]);
    }
    const std::string body = steps(scope, 1 + below(1 + options_.most_steps / 2), false);
    callee.result = any_type();
    const std::string result = of_type(scope, callee.result);
    callees_.push_back(callee);
    return "def " + name + "(" + params + ") -> " + type_text(callee.result) + " {\n" + body +
           "  " + result + "\n}\n";
  }

  std::string steps(Scope& scope, size_t count, bool of_main) {
    std::string outer = std::move(body_);
    body_.clear();
    const bool was_main = std::exchange(in_main_, of_main);
    for (; count > 0; --count) step(scope);
    in_main_ = was_main;
    return std::exchange(body_, std::move(outer));
  }

  void step(Scope& scope) {
    const Value value = any_tensor(scope);
    const std::string& x = value.first;
    Type type = value.second;
    switch (below(options_.places.empty() ? 11 : 18)) {
      case 0:
        bind(scope, any({"tanh", "sigmoid", "nn.relu", "negative"}) + "(" + x + ")", type);
        return;
      case 1:
        bind(scope,
             any({"add", "subtract", "maximum"}) + "(" + x + ", " + of_type_or(scope, value) + ")",
             type);
        return;
      case 2:
        bind(scope, "tanh(multiply(" + x + ", " + of_type_or(scope, value) + "))", type);
        return;
      case 3: {
        const Type whole = matrix(), other = row();
        bind(scope, "add(" + of_type(scope, whole) + ", " + of_type(scope, other) + ")", whole);
        return;
      }
      case 4:
        move(scope, value);
        return;
      case 5: {
        const Value &a = pick(scope), b = pick(scope);
        bind(scope, "(" + a.first + ", " + b.first + ")", tuple({a.second, b.second}));
        return;
      }
      case 6: {
        const std::string a = of_type(scope, matrix()), b = of_type(scope, matrix());
        bind(scope, "tanh(nn.dense(" + a + ", " + b + "))", {{n(), n()}});
        return;
      }
      case 7:
      case 8:
        if (callees_.empty()) {
          bind(scope, "nn.softmax(" + of_type(scope, matrix()) + ", axis=-1)", matrix());
        } else {
          const Callee callee = callees_[below(callees_.size())];
          bind(scope, callee.name + "(" + arguments(scope, callee.params) + ")", callee.result);
        }
        return;
      case 9:
        if (options_.control && depth_ < 2) return branch(scope);
        bind(scope, "min(" + of_type(scope, matrix()) + ", axis=[0])", row());
        return;
      case 10:
        if (options_.control && depth_ < 2) return loop(scope);
        bind(scope, "abs(" + x + ")", type);
        return;
      case 11:
      case 12:
        bind(scope, "device_copy(" + x + ", from=\"" + place() + "\", to=\"" + place() + "\")",
             type);
        return;
      default: {
        const std::string body = below(4) != 0 ? "True" : "False",
                          result = below(4) == 0 ? "True" : "False";
        bind(scope,
             "on_device(" + x + ", device=\"" + place() + "\", constrain_body=" + body +
                 ", constrain_result=" + result + ")",
             type);
      }
    }
  }
  const std::string& place() { return options_.places[below(options_.places.size())]; }
  // Another value of its type, or itself.
  std::string of_type_or(const Scope& scope, const Value& value) {
    Scope same;
    for (const Value& leaf : leaves_of(scope))
      if (key(leaf.second) == key(value.second)) same.push_back(leaf);
    return pick(same).first;
  }

  // What changes shapes: extents are terms then.
  void move(Scope& scope, const Value& value) {
    const std::string& x = value.first;
    Type type = value.second;
    std::vector<Dim>& shape = type.shape;
    switch (below(5)) {
      case 0: {
        Dim whole{"", 1};  // which must not begin as a list does, (n)
        for (const Dim& dim : shape) {
          whole.text += whole.text.empty() ? "" : " * ";
          whole.text += dim.text.size() == 1 ? dim.text : "(" + dim.text + ")";
          whole.value *= dim.value;
        }
        shape = {{"1", 1}, whole};
        bind(scope, "reshape(" + x + ", newshape=[" + dims_text(shape) + "])", type);
        return;
      }
      case 1: {
        std::string axes;
        for (size_t i = 0; i < shape.size(); ++i)
          axes += (i > 0 ? ", " : "") + std::to_string((i + 1) % shape.size());
        std::rotate(shape.begin(), shape.begin() + 1, shape.end());
        bind(scope, "transpose(" + x + ", axes=[" + axes + "])", type);
        return;
      }
      case 2: {
        const std::string other = of_type_or(scope, value);
        const Dim half = shape[0];
        shape[0] = {"(" + half.text + ") * 2", half.value * 2};
        const Type doubled = type;
        const std::string joined = "concatenate((" + x + ", " + other + "), axis=0)";
        if (below(2) == 0) {
          bind(scope, joined, doubled);
        } else {
          shape[0] = half;
          bind(scope, "split(" + joined + ", indices_or_sections=[" + text_of(half) + "], axis=0)",
               tuple({type, type}));
        }
        return;
      }
      case 3: {
        const std::string end = text_of(shape[0]);
        shape[0] = {"((" + shape[0].text + ") + 1) / 2", (shape[0].value + 1) / 2};
        bind(scope, "strided_slice(" + x + ", begin=[0], end=[" + end + "], strides=[2], axes=[0])",
             type);
        return;
      }
      default:
        bind(scope, "expand_dims(" + x + ", axis=0)", {{{"1", 1}}});
        scope.back().second.shape.insert(scope.back().second.shape.end(), shape.begin(),
                                         shape.end());
    }
  }

  // A literal, which reads nothing but its parameters.
  std::string literal(const std::string& counter, const std::vector<Type>& params,
                      const std::function<std::string(Scope&)>& result) {
    Scope scope;
    std::string text = counter;
    for (const Type& param : params) {
      const std::string name = "%a" + std::to_string(next_++);
      scope.emplace_back(name, param);
      text += (text.empty() ? "" : ", ") + name + ": " + type_text(param);
    }
    ++depth_;
    std::string body = steps(scope, 1 + below(3), false);
    --depth_;
    std::string outer = std::exchange(body_, std::move(body));
    const std::string given = result(scope);  // may bind
    body = std::exchange(body_, std::move(outer));
    return "fn (" + text + ") {\n" + body + "  " + given + "\n  }";
  }
  std::string function_value(Scope& scope, const std::string& text) {
    (void)scope;
    const std::string name = "%" + std::to_string(next_++);
    body_ += "  " + name + " = " + text + ";\n";
    return name;
  }
  std::string condition() { return in_main_ && below(2) == 0 ? "%go" : any({"True", "False"}); }

  void branch(Scope& scope) {
    std::vector<Type> params = {matrix()};
    for (size_t i = below(3); i > 0; --i) params.push_back(below(2) == 0 ? matrix() : row());
    const Type result = any_type();
    const auto given = [&](Scope& inside) { return of_type(inside, result); };
    const std::string then = function_value(scope, literal("", params, given)),
                      otherwise = function_value(scope, literal("", params, given));
    bind(scope,
         "control.if(" + condition() + ", " + then + ", " + otherwise + ", " +
             arguments(scope, params) + ")",
         result);
  }

  void loop(Scope& scope) {
    const size_t states = 1 + below(2), scanned = below(2), stacked = below(2);
    std::vector<Type> params, operands, results;
    for (size_t i = 0; i < states; ++i)
      params.push_back(i == 0 || below(2) == 0 ? matrix() : row());
    operands = results = params;
    if (scanned > 0) {
      params.push_back(row());
      operands.push_back(matrix());
    }
    for (size_t i = below(2); i > 0; --i) {
      params.push_back(row());
      operands.push_back(row());
    }
    const std::string counter = "%i" + std::to_string(next_++);
    const std::string body = function_value(
        scope, literal(counter + ": int64", params, [&](Scope& inside) {
          std::string text = "(" + (below(2) == 0 ? "less(" + counter + ", 2i64)" : "True");
          for (size_t i = 0; i < states; ++i) text += ", tanh(" + of_type(inside, results[i]) + ")";
          if (stacked > 0) text += ", " + of_type(inside, row());
          return text + ")";
        }));
    if (stacked > 0) results.push_back(matrix());
    bind(scope,
         "control.loop(" + (in_main_ && below(2) == 0 ? "%trips" : any({"0i64", "2i64", "3i64"})) +
             ", " + (below(4) == 0 ? condition() : "True") + ", " + body + ", " +
             arguments(scope, operands) + ", states=" + std::to_string(states) +
             ", scanned=" + std::to_string(scanned) +
             (scanned + stacked > 0 ? ", rows=" + text_of(n()) : "") + ")",
         tuple(results));
  }

  std::mt19937_64 rng_;
  const RandomModuleOptions options_;
  std::vector<Callee> callees_;
  std::string body_;
  size_t next_ = 0, depth_ = 0;
  bool in_main_ = false;
};

}  // namespace collage::testing
