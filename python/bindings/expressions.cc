#include "expressions.h"

#include <collage/expression.h>
#include <collage/passes.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <optional>
#include <stdexcept>

#include "arrays.h"

namespace collage::python {

namespace {

using Value = Expression::Value;

nb::object value_to_python(const Value& value) {
  return std::visit(
      [](const auto& held) -> nb::object {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::monostate>)
          return nb::none();
        else if constexpr (std::is_same_v<Held, DType>)
          return nb::cast(std::string(dtype_name(held)));
        else
          return nb::cast(held);
      },
      value);
}

bool all_are(const nb::sequence& items, bool (*is)(nb::handle)) {
  for (nb::handle item : items)
    if (!is(item)) return false;
  return true;
}

bool is_whole(nb::handle item) { return nb::isinstance<nb::int_>(item); }
bool is_number(nb::handle item) { return is_whole(item) || nb::isinstance<nb::float_>(item); }
bool is_list(nb::handle item) {
  return nb::isinstance<nb::list>(item) || nb::isinstance<nb::tuple>(item);
}

Value value_from_python(const std::string& what, nb::handle given) {
  if (given.is_none()) return std::monostate();
  if (nb::isinstance<nb::bool_>(given)) return nb::cast<bool>(given);
  if (is_whole(given)) return nb::cast<int64_t>(given);
  if (nb::isinstance<nb::float_>(given)) return nb::cast<double>(given);
  if (nb::isinstance<nb::str>(given)) return nb::cast<std::string>(given);
  if (is_list(given)) {
    const auto items = nb::borrow<nb::sequence>(given);
    if (all_are(items, is_whole)) return nb::cast<std::vector<int64_t>>(given);
    if (all_are(items, is_number)) return nb::cast<std::vector<double>>(given);
    if (all_are(items, is_list)) return nb::cast<std::vector<std::vector<int64_t>>>(given);
  }
  const std::string told = what +
                           ": None, a number, a text, or a list of numbers or of lists of whole "
                           "numbers, not " +
                           nb::type_name(given.type()).c_str();
  throw nb::type_error(told.c_str());
}

// `function` is the caller's to keep alive. What it raises is told without the interpreter.
Value property_by(const std::string& name, nb::handle function, const Expression& expression) {
  const nb::gil_scoped_acquire lock;
  std::string wrong;
  try {
    return value_from_python("property '" + name + "'", function(expression));
  } catch (const nb::python_error& raised) {
    wrong = raised_text(raised);
  } catch (const nb::builtin_exception& refused) {  // no attribute's value
    wrong = refused.what();
  }
  throw std::runtime_error(wrong);
}

std::optional<Expression> first(const std::vector<Expression>& found) {
  return found.empty() ? std::nullopt : std::optional(found[0]);
}

TensorInfo only_tensor(const Expression& self) {
  const std::vector<TensorInfo> tensors = self.tensors();
  if (tensors.size() != 1 || self.type().front() == '(')
    raise(Status(ErrorCode::kUsage, "a " + self.type() + " is no tensor"));
  return tensors[0];
}

std::string kind_of(const Expression& self) {
  using Kind = Expression::Kind;
  switch (self.kind()) {
    case Kind::kParameter:
      return "parameter";
    case Kind::kConstant:
      return "constant";
    case Kind::kCall:
      return "call";
    case Kind::kTuple:
      return "tuple";
    case Kind::kItem:
      return "item";
    case Kind::kFunction:
      return "function";
    case Kind::kGlobal:
      break;
  }
  return "global";
}

std::string told(const Expression& self) {
  const std::string what = !self.op().empty() ? self.op() : self.name();
  return "<collage.Expression " + kind_of(self) + (what.empty() ? "" : " " + what) + ": " +
         self.type() + ">";
}

nb::dict attributes(const Expression& self) { return to_python(self.attributes()); }

}  // namespace

Expression::Attributes from_python(const nb::dict& given) {
  Expression::Attributes attributes;
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    attributes.emplace_back(name, value_from_python("attribute '" + name + "'", value));
  }
  return attributes;
}

nb::dict to_python(const Expression::Attributes& attributes) {
  nb::dict result;
  for (const auto& [name, value] : attributes) result[nb::cast(name)] = value_to_python(value);
  return result;
}

void bind_expressions(nb::module_& core) {
  core.def(
      "register_property",
      [](const std::string& name, nb::handle function) {
        check(passes::register_property(name, [name, function](const Expression& expression) {
          return property_by(name, function, expression);
        }));
      },
      nb::arg("name"), nb::arg("function"));
  nb::class_<Expression>(core, "Expression",
                         "A value in a graph, immutable and typed. `==` is the very same one.")
      .def_prop_ro("kind", &kind_of,
                   "'parameter', 'constant', 'call', 'tuple', 'item', 'function' or 'global'.")
      .def_prop_ro("type", &Expression::type, "As in Relay text: 'Tensor[(1, 8), float32]'.")
      .def_prop_ro(
          "shape",
          [](const Expression& self) {
            nb::list shape;
            for (int64_t extent : only_tensor(self).shape) shape.append(extent);
            return nb::tuple(shape);
          },
          nb::sig("def shape(self) -> tuple[int, ...]"), "Of a tensor.")
      .def_prop_ro(
          "dtype",
          [](const Expression& self) { return std::string(dtype_name(only_tensor(self).dtype)); },
          "Of a tensor.")
      .def_prop_ro("op", &Expression::op, "The operator that is called; '' where there is none.")
      .def_prop_ro("name", &Expression::name, "Of a parameter or a global function; else ''.")
      .def_prop_ro("origin", &Expression::origin, "The ONNX node it comes from.")
      .def_prop_ro("attributes", &attributes, nb::sig("def attributes(self) -> dict[str, object]"),
                   "Of a call of an operator, defaults included, or of a function.")
      .def_prop_ro("arguments", &Expression::arguments,
                   "Of a call; the fields of a tuple; the tuple of an item.")
      .def_prop_ro(
          "callee", [](const Expression& self) { return first(self.callee()); },
          "The function that is called.")
      .def_prop_ro("parameters", &Expression::parameters, "Of a function.")
      .def_prop_ro(
          "body", [](const Expression& self) { return first(self.body()); },
          "What a function gives.")
      .def_prop_ro("index", &Expression::index, "Of an item; else 0.")
      .def_prop_ro(
          "value",
          [](const Expression& self) -> nb::object {
            const Tensor value = self.value();
            if (!value.defined()) return nb::none();
            return read_only_array_of(value);
          },
          "Of a constant: a NumPy array that cannot be written to.")
      .def("__eq__",
           [](const Expression& self, nb::handle other) {
             return nb::isinstance<Expression>(other) && self == nb::cast<Expression>(other);
           })
      .def("__hash__",
           [](const Expression& self) { return std::hash<const void*>()(self.node().get()); })
      .def("__repr__", &told);

  core.def(
      "call",
      [](const std::string& op, const std::vector<Expression>& arguments, const nb::dict& given,
         const std::string& origin) {
        return value_of(Expression::call(op, arguments, from_python(given), origin));
      },
      nb::arg("op"), nb::arg("arguments"), nb::arg("attributes"), nb::arg("origin"));
  core.def(
      "call_function",
      [](const Expression& function, const std::vector<Expression>& arguments,
         const std::string& origin) {
        return value_of(Expression::call(function, arguments, origin));
      },
      nb::arg("function"), nb::arg("arguments"), nb::arg("origin"));
  core.def(
      "constant",
      [](nb::handle array) { return value_of(Expression::constant(copy_of(array, "constant"))); },
      nb::arg("array"));
  core.def(
      "parameter",
      [](const std::string& name, const std::string& dtype, const Shape& shape) {
        return value_of(Expression::parameter(name, value_of(parse_dtype(dtype)), shape));
      },
      nb::arg("name"), nb::arg("dtype"), nb::arg("shape"));
  core.def("tuple_of", &Expression::tuple, nb::arg("fields"));
  core.def(
      "item",
      [](const Expression& tuple, int64_t index) {
        return value_of(Expression::item(tuple, index));
      },
      nb::arg("tuple"), nb::arg("index"));
  core.def(
      "function",
      [](const std::vector<Expression>& parameters, const Expression& body, const nb::dict& given) {
        return value_of(Expression::function(parameters, body, from_python(given)));
      },
      nb::arg("parameters"), nb::arg("body"), nb::arg("attributes"));
}

}  // namespace collage::python
