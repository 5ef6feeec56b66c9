#include "symbolic.h"

#include <collage/symbolic.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <utility>

#include "arrays.h"

namespace collage::python {

namespace {

// `build` returns a model, or says why there is none of these sizes. What it raises goes on to the
// caller.
SymbolicModel generalise(const std::vector<std::string>& symbols, const nb::callable& build) {
  std::exception_ptr raised;
  Result<SymbolicModel> made =
      SymbolicModel::generalise(symbols, [&](const SymbolicModel::Sizes& sizes) -> Result<Model> {
        try {
          const nb::object given = build(nb::cast(sizes));
          if (nb::isinstance<Model>(given)) return nb::cast<Model>(given);
          return Status(ErrorCode::kBadModel, nb::cast<std::string>(given));
        } catch (...) {
          raised = std::current_exception();
          return Status(ErrorCode::kInternal, "the function raised");
        }
      });
  if (raised) std::rethrow_exception(raised);
  return value_of(std::move(made));
}

}  // namespace

void bind_symbolic(nb::module_& core) {
  nb::class_<SymbolicModel>(core, "SymbolicModel")
      .def_prop_ro("symbols", &SymbolicModel::symbols)
      .def_prop_ro("inputs", &SymbolicModel::inputs)
      .def_prop_ro("outputs", &SymbolicModel::outputs)
      .def_prop_ro("text", &SymbolicModel::text)
      .def(
          "at",
          [](const SymbolicModel& self, const SymbolicModel::Sizes& sizes, bool simplify) {
            return value_of(unlocked([&] { return self.at(sizes, simplify); }));
          },
          nb::arg("sizes"), nb::arg("simplify"))
      .def(
          "save",
          [](const SymbolicModel& self, const std::filesystem::path& path) {
            check(unlocked([&] { return self.save(path); }));
          },
          nb::arg("path"));
  core.def(
      "load_symbolic",
      [](const std::filesystem::path& path, const std::map<std::string, std::string>& dims,
         const std::vector<std::filesystem::path>& data_roots) {
        SymbolicOptions options;
        options.dims = dims;
        options.data_roots = data_roots;
        return value_of(unlocked([&] { return SymbolicModel::load(path, options); }));
      },
      nb::arg("path"), nb::arg("dims"), nb::arg("data_roots"));
  core.def("generalise", &generalise, nb::arg("symbols"), nb::arg("build"));
}

}  // namespace collage::python
