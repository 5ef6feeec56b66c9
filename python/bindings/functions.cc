#include "functions.h"

#include <collage/functions.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.h"
#include "expressions.h"

namespace collage::python {

namespace {

using Type = std::tuple<Shape, std::string>;  // shape and dtype, as Python has them

// A collage.Error as it is, of anything else its type and message.
Status status_of(const nb::python_error& raised) {
  if (nb::hasattr(raised.value(), "code") &&
      raised.matches(nb::module_::import_("collage").attr("Error")))
    return Status(static_cast<ErrorCode>(nb::cast<int>(raised.value().attr("code"))),
                  nb::str(raised.value()).c_str());
  return Status(ErrorCode::kInternal, raised_text(raised));
}

// What `body` gives, with the interpreter's lock; an error where it raises.
template <typename Body>
auto locked(const Body& body) -> decltype(body()) {
  const nb::gil_scoped_acquire lock;
  try {
    return body();
  } catch (const nb::python_error& raised) {
    return status_of(raised);
  } catch (const nb::cast_error&) {
    return Status(ErrorCode::kUsage, "the type rule gives no list of shapes and dtypes");
  }
}

Result<std::vector<ArrayType>> types_by(nb::handle rule, std::span<const ArrayType> inputs,
                                        const Expression::Attributes& attributes) {
  return locked([&]() -> Result<std::vector<ArrayType>> {
    std::vector<Type> given;
    for (const ArrayType& input : inputs)
      given.emplace_back(input.shape, std::string(dtype_name(input.dtype)));
    std::vector<ArrayType> results;
    for (const auto& [shape, name] :
         nb::cast<std::vector<Type>>(rule(given, to_python(attributes)))) {
      Result<DType> dtype = parse_dtype(name);
      if (!dtype.ok()) return std::move(dtype).status();
      results.push_back({shape, *dtype});
    }
    return results;
  });
}

nb::object array_over(const Tensor& memory, Library library, bool writable) {
  const nb::object array = array_of(memory, library);
  if (!writable && library == Library::kNumPy) array.attr("setflags")(nb::arg("write") = false);
  return array;
}

// `rule` and `function` are the caller's to keep alive. A function of a family gets lists of inputs
// and results, and a dictionary of attributes; any other gets all of them one by one.
FunctionDefinition definition_of(nb::handle function, nb::handle rule,
                                 const std::vector<size_t>& updates, bool for_torch,
                                 bool is_family = false) {
  FunctionDefinition definition;
  definition.types = [rule](std::span<const ArrayType> inputs,
                            const Expression::Attributes& values) {
    return types_by(rule, inputs, values);
  };
  const Library library = for_torch ? Library::kTorch : Library::kNumPy;
  definition.call = [=](std::span<const Tensor> inputs, std::span<Tensor> results,
                        const Expression::Attributes& values) {
    return locked([&]() -> Status {
      nb::list arguments, filled;
      for (size_t i = 0; i < inputs.size(); ++i)
        arguments.append(
            array_over(inputs[i], library, std::count(updates.begin(), updates.end(), i) > 0));
      for (const Tensor& result : results) filled.append(array_over(result, library, true));
      const nb::dict attributes = to_python(values);
      const nb::object given = is_family ? function(arguments, filled, attributes)
                                         : function(*(arguments + filled), **attributes);
      if (given.is_none()) return {};
      return Status(ErrorCode::kUsage, std::string("it returned a ") +
                                           nb::type_name(given.type()).c_str() +
                                           "; its last arguments are what it fills");
    });
  };
  definition.updates = updates;
  return definition;
}

}  // namespace

void bind_functions(nb::module_& core) {
  core.def(
      "register_function",
      [](std::string label, nb::handle function, nb::handle rule,
         const std::vector<size_t>& updates, std::string onnx, bool for_torch,
         const nb::dict& attributes, bool effects) {
        FunctionDefinition definition = definition_of(function, rule, updates, for_torch);
        definition.label = std::move(label);
        definition.onnx = std::move(onnx);
        definition.attributes = from_python(attributes);
        definition.effects = effects;
        check(register_function(std::move(definition)));
      },
      nb::arg("label"), nb::arg("function"), nb::arg("rule"), nb::arg("updates"), nb::arg("onnx"),
      nb::arg("for_torch"), nb::arg("attributes"), nb::arg("effects"));
  // `make` gives function and rule of a label, over tensors of PyTorch and any attributes.
  core.def(
      "register_functions",
      [](const std::string& prefix, nb::handle make) {
        check(register_functions(
            prefix, [make](const std::string& label) -> Result<FunctionDefinition> {
              return locked([&]() -> Result<FunctionDefinition> {
                const auto [function, rule] =
                    nb::cast<std::tuple<nb::handle, nb::handle>>(make(label));
                FunctionDefinition definition = definition_of(function, rule, {}, true, true);
                definition.open_attributes = true;
                return definition;
              });
            }));
      },
      nb::arg("prefix"), nb::arg("make"));
  core.def(
      "register_node",
      [](const std::string& node, const std::string& label) {
        check(unlocked([&] { return register_node(node, label); }));
      },
      nb::arg("node"), nb::arg("label"));
  core.def(
      "register_intrinsic",
      [](std::string name, std::string program, uintptr_t lowering) {
        IntrinsicDefinition definition{std::move(name), std::move(program), nullptr};
        definition.lowering = reinterpret_cast<decltype(definition.lowering)>(lowering);
        // The lowering may be of Python, which takes the lock itself.
        check(unlocked([&] { return register_intrinsic(definition); }));
      },
      nb::arg("name"), nb::arg("program"), nb::arg("lowering"));
}

}  // namespace collage::python
