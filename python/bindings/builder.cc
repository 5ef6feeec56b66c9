// Modules built statement by statement, and tensor programs as objects.
#include "builder.h"

#include <collage/builder.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "expressions.h"

namespace collage::python {

namespace {

using Types = std::vector<std::pair<Shape, std::string>>;

std::vector<ArrayType> array_types(const Types& given) {
  std::vector<ArrayType> types;
  for (const auto& [shape, dtype] : given) types.push_back({shape, value_of(parse_dtype(dtype))});
  return types;
}

void bind_programs_of_loops(nb::module_& core) {
  nb::class_<TensorProgram>(core, "TensorProgram",
                            "A kernel as data: stages, and a schedule. Immutable.")
      .def(nb::new_([](const std::string& text) { return value_of(TensorProgram::parse(text)); }),
           nb::arg("text"), "Of text: 'program { param A: float32[4]; … }'.")
      .def_prop_ro("text", &TensorProgram::text)
      .def_prop_ro("parameters", &TensorProgram::parameters)
      .def_prop_ro("results", &TensorProgram::results)
      .def_prop_ro("schedule", &TensorProgram::schedule,
                   "Its steps, as in the text: 'C.parallel(i);'.")
      .def(
          "scheduled",
          [](const TensorProgram& self, const std::vector<std::string>& steps) {
            return value_of(self.scheduled(steps));
          },
          nb::arg("steps"), "The program with this schedule.")
      .def("__repr__", &TensorProgram::text);
  core.def(
      "emit_operator",
      [](const std::string& op, const Types& arguments, const nb::dict& attributes) {
        return value_of(TensorProgram::emit(op, array_types(arguments), from_python(attributes)));
      },
      nb::arg("op"), nb::arg("arguments"), nb::arg("attributes"));
  core.def(
      "emit_function",
      [](const Expression& function) { return value_of(TensorProgram::emit(function)); },
      nb::arg("function"));
}

}  // namespace

void bind_builder(nb::module_& core) {
  bind_programs_of_loops(core);
  nb::class_<ModuleBuilder>(core, "ModuleBuilder")
      .def(nb::init<>())
      .def(
          "begin",
          [](ModuleBuilder& self, const std::string& name,
             const std::vector<Expression>& parameters, const nb::dict& attributes) {
            check(self.begin(name, parameters, from_python(attributes)));
          },
          nb::arg("name"), nb::arg("parameters"), nb::arg("attributes"))
      .def("begin_dataflow", [](ModuleBuilder& self) { check(self.begin_dataflow()); })
      .def("end_dataflow", [](ModuleBuilder& self) { check(self.end_dataflow()); })
      .def(
          "emit",
          [](ModuleBuilder& self, const Expression& value) { return value_of(self.emit(value)); },
          nb::arg("value"))
      .def(
          "emit_te",
          [](ModuleBuilder& self, const TensorProgram& program,
             const std::vector<Expression>& arguments,
             const std::string& name) { return value_of(self.emit_te(program, arguments, name)); },
          nb::arg("program"), nb::arg("arguments"), nb::arg("name"))
      .def(
          "emit_packed",
          [](ModuleBuilder& self, const std::string& label,
             const std::vector<Expression>& arguments, const nb::dict& attributes,
             const Types& results) {
            return value_of(
                self.emit_packed(label, arguments, from_python(attributes), array_types(results)));
          },
          nb::arg("label"), nb::arg("arguments"), nb::arg("attributes"), nb::arg("results"))
      .def(
          "output",
          [](ModuleBuilder& self, const Expression& result) {
            return value_of(self.output(result));
          },
          nb::arg("result"))
      .def("model", [](const ModuleBuilder& self) { return value_of(self.model()); });
}

}  // namespace collage::python
