// collage._core: the public interface of libcollage as Python sees it. What Python code would write
// by hand around it (names, dictionaries, documentation) is in python/collage/__init__.py.
//
// Loading, compiling, running and saving release the interpreter's lock.
#include <collage/collage.h>
#include <collage/operators.h>
#include <collage/plugin.h>
#include <collage/report.h>
#include <collage/version.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "arrays.h"
#include "builder.h"
#include "contents.h"
#include "devices.h"
#include "expressions.h"
#include "functions.h"
#include "modules.h"
#include "programs.h"
#include "symbolic.h"

NB_MODULE(_core, core) {
  using namespace collage;
  using namespace collage::python;
  core.attr("__version__") = COLLAGE_VERSION;
  // Objects that Python's modules hold outlive nanobind's last look at them; that is no leak.
  nb::set_leak_warnings(false);

  nb::class_<TensorInfo>(core, "TensorInfo", "Name, shape and dtype of an input or output.")
      .def_ro("name", &TensorInfo::name)
      .def_prop_ro(
          "shape",
          [](const TensorInfo& info) {
            nb::list shape;
            for (int64_t extent : info.shape) shape.append(extent);
            return nb::tuple(shape);
          },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_ro("dims", &TensorInfo::dims)
      .def_prop_ro("dtype",
                   [](const TensorInfo& info) { return std::string(dtype_name(info.dtype)); })
      .def("__repr__", [](const TensorInfo& info) {
        return "TensorInfo('" + info.name + "', " + shape_to_string(info.shape) + ", '" +
               std::string(dtype_name(info.dtype)) + "')";
      });

  bind_expressions(core);
  bind_contents(core);
  bind_devices(core);
  nb::class_<Model> model(core, "Model");
  model.def_prop_ro("inputs", &Model::inputs).def_prop_ro("outputs", &Model::outputs);
  bind_programs(core, model);
  bind_modules(core, model);

  core.def(
      "load",
      [](const std::filesystem::path& path, std::map<std::string, Shape> shapes,
         std::map<std::string, int64_t> dims, bool simplify,
         std::vector<std::filesystem::path> data_roots) {
        LoadOptions options{std::move(shapes), std::move(dims)};
        options.simplify = simplify;
        options.data_roots = std::move(data_roots);
        return value_of(unlocked([&] { return Model::load(path, options); }));
      },
      nb::arg("path"), nb::arg("shapes"), nb::arg("dims"), nb::arg("simplify"),
      nb::arg("data_roots"));
  bind_functions(core);
  bind_builder(core);
  bind_symbolic(core);
  core.def(
      "load_plugin",
      [](const std::filesystem::path& library) {
        check(unlocked([&] { return load_plugin(library); }));
      },
      nb::arg("library"));
  core.def(
      "define_operator",
      [](std::string name, std::string program, std::string onnx,
         std::vector<std::map<std::string, int64_t>> cases) {
        check(define_operator(
            {std::move(name), std::move(onnx), std::move(program), std::move(cases)}));
      },
      nb::arg("name"), nb::arg("program"), nb::arg("onnx"), nb::arg("cases"));
  core.def(
      "check_operator",
      [](const std::string& name, const std::vector<std::string>& targets) {
        check(unlocked([&] { return check_operator(name, targets); }));
      },
      nb::arg("name"), nb::arg("targets"));
  core.def(
      "explain_report",
      [](const std::string& report, const std::string& kernel) {
        return value_of(explain_report(report, kernel));
      },
      nb::arg("report"), nb::arg("kernel"));
  core.def(
      "report_page", [](const std::string& report) { return value_of(report_page(report)); },
      nb::arg("report"));
  core.def(
      "empty",
      [](const Shape& shape, const std::string& dtype) {
        return array_of(value_of(Tensor::allocate(value_of(parse_dtype(dtype)), shape)),
                        Library::kNumPy);
      },
      nb::arg("shape"), nb::arg("dtype"));
}
