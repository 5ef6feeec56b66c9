#include "modules.h"

#include <collage/module.h>
#include <collage/passes.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <optional>
#include <utility>

#include "arrays.h"

namespace collage::python {

namespace {

std::string function_kind(const ModuleFunction& function) {
  using Kind = ModuleFunction::Kind;
  if (function.kind == Kind::kGraph) return "graph";
  return function.kind == Kind::kProgram ? "program" : "external";
}

// What a function of Python's raises ends the rewriting and goes on to the caller.
class Replacer {
 public:
  explicit Replacer(const nb::callable& replace) : replace_(replace) {}

  Result<std::optional<Expression>> operator()(const Expression& root, const nb::dict& values) {
    try {
      const nb::object given = replace_(root, **values);
      if (given.is_none()) return std::optional<Expression>();
      if (nb::isinstance<Expression>(given)) return std::optional(nb::cast<Expression>(given));
      const std::string told = std::string("rewrite: expected a collage.Expression or None, got ") +
                               nb::type_name(given.type()).c_str();
      throw nb::type_error(told.c_str());
    } catch (...) {
      raised_ = std::current_exception();
      return Status(ErrorCode::kInternal, "the function raised");
    }
  }

  Model value_of(Result<Model> result) const {
    if (raised_) std::rethrow_exception(raised_);
    return python::value_of(std::move(result));
  }

 private:
  const nb::callable& replace_;
  std::exception_ptr raised_;
};

// Of every call, or of every match of the pattern, whose names are keyword arguments.
Model rewrite(const Model& self, const nb::callable& replace, const std::string& pattern) {
  Replacer replacer(replace);
  if (pattern.empty())
    return replacer.value_of(
        rewrite_calls(self, [&](const Expression& call) { return replacer(call, nb::dict()); }));
  return replacer.value_of(rewrite_matches(self, pattern, [&](const PatternMatch& match) {
    nb::dict values;
    for (const auto& [name, value] : match.values) values[name.c_str()] = nb::cast(value);
    return replacer(match.root, values);
  }));
}

Model parse(const std::string& text, const nb::list& weights,
            const std::map<std::string, int64_t>& dims) {
  std::vector<Tensor> tensors;
  for (nb::handle array : weights) tensors.push_back(copy_of(array, "weights"));
  return value_of(unlocked([&] { return parse_model(text, tensors, dims); }));
}

void bind_passes(nb::module_& core) {
  nb::class_<ModelPass>(core, "ModelPass")
      .def_ro("name", &ModelPass::name)
      .def(
          "run",
          [](const ModelPass& self, const Model& model) {
            return value_of(unlocked([&] { return self.run(model); }));
          },
          nb::arg("model"));
  core.def("simplify", &passes::simplify);
  core.def("standard_pass", &passes::standard, nb::arg("name"));
  core.def("standard_pass_names", &passes::standard_names);
  core.def("partition_for", &passes::partition_for, nb::arg("options"));
  core.def("codegen", &passes::codegen, nb::arg("options"));
  core.def("fuse_pattern", &passes::fuse_pattern, nb::arg("pattern"), nb::arg("label"),
           nb::arg("compiler"));
  core.def(
      "rule_text",
      [](const std::string& rule) {
        return value_of(unlocked([&] { return passes::rule_text(rule); }));
      },
      nb::arg("rule"));
  core.def("annotate_nodes",
           nb::overload_cast<const std::vector<std::string>&>(&passes::annotate_devices),
           nb::arg("places"));
  core.def("annotate_devices", nb::overload_cast<const ProgramOptions&>(&passes::annotate_devices),
           nb::arg("options"));
  core.def("plan_devices", &passes::plan_devices, nb::arg("devices"));
  core.def("partition_by_device", &passes::partition_by_device, nb::arg("devices"), nb::arg("all"));
  core.def("apply_history_best", &passes::apply_history_best, nb::arg("options"));
  core.def("tune", &passes::tune, nb::arg("filter"), nb::arg("options"));
  nb::class_<MeasuringTask>(core, "MeasuringTask",
                            "A function that compiling needs costs of, and whose they are.")
      .def_ro("function", &MeasuringTask::function)
      .def_ro("targets", &MeasuringTask::targets)
      .def_ro("unknown", &MeasuringTask::unknown);
  core.def(
      "extract_tasks",
      [](const Model& model, const ProgramOptions& options) {
        return value_of(unlocked([&] { return extract_tasks(model, options); }));
      },
      nb::arg("model"), nb::arg("options"));
}

}  // namespace

void bind_modules(nb::module_& core, nb::class_<Model>& model) {
  nb::class_<ModuleFunction>(core, "ModuleFunction", "A function that a module defines.")
      .def_ro("name", &ModuleFunction::name)
      .def_prop_ro("kind", &function_kind, "'graph', 'program' or 'external'.")
      .def_ro("type", &ModuleFunction::type)
      .def("__repr__", [](const ModuleFunction& self) {
        return "ModuleFunction('" + self.name + "', '" + function_kind(self) + "', '" + self.type +
               "')";
      });
  nb::class_<ExternalModule>(core, "ExternalModule",
                             "A program that is attached to a module, and its symbol.")
      .def_ro("symbol", &ExternalModule::symbol)
      .def_ro("target", &ExternalModule::target)
      .def_ro("variant", &ExternalModule::variant)
      .def_prop_ro("code", [](const ExternalModule& self) { return read_only_array_of(self.code); })
      .def("__repr__", [](const ExternalModule& self) {
        return "ExternalModule('" + self.symbol + "', '" + self.target + "', '" + self.variant +
               "')";
      });
  model
      .def(
          "text",
          [](const Model& self, bool values, bool types) {
            return value_of(unlocked([&] { return model_text(self, {values, types}); }));
          },
          nb::arg("values"), nb::arg("types"))
      .def(
          "script",
          [](const Model& self, bool values, bool types) {
            return value_of(unlocked([&] { return model_script(self, {values, types}); }));
          },
          nb::arg("values"), nb::arg("types"))
      .def("weights",
           [](const Model& self) {
             nb::list arrays;
             for (const Tensor& tensor : value_of(model_weights(self)))
               arrays.append(read_only_array_of(tensor));
             return arrays;
           })
      .def(
          "save",
          [](const Model& self, const std::filesystem::path& path) {
            check(unlocked([&] { return save_model(self, path); }));
          },
          nb::arg("path"))
      .def("work",
           [](const Model& self) {
             const ModelWork work = value_of(model_work(self));
             return std::pair(work.operations, work.bytes);
           })
      .def("verify", [](const Model& self) { check(unlocked([&] { return verify_model(self); })); })
      .def("functions", [](const Model& self) { return value_of(module_functions(self)); })
      .def("external_modules", [](const Model& self) { return value_of(external_modules(self)); })
      .def(
          "function",
          [](const Model& self, const std::string& name) {
            return value_of(graph_function(self, name));
          },
          nb::arg("name"))
      .def(
          "global_function",
          [](const Model& self, const std::string& name) {
            return value_of(global_function(self, name));
          },
          nb::arg("name"))
      .def(
          "with_function",
          [](const Model& self, const std::string& name, const Expression& function) {
            return value_of(with_function(self, name, function));
          },
          nb::arg("name"), nb::arg("function"))
      .def("rewrite", &rewrite, nb::arg("replace"), nb::arg("pattern"));
  core.def("parse", &parse, nb::arg("text"), nb::arg("weights"), nb::arg("dims"));
  bind_passes(core);
}

}  // namespace collage::python
