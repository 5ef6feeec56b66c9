#include "dynamic.h"

#include <collage/dynamic.h>
#include <collage/dynamic_artifact.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <utility>

#include "arrays.h"
#include "programs.h"

namespace collage::python {

Effort effort_of(const std::string& name) {
  if (name == "fast") return Effort::kFast;
  if (name == "default") return Effort::kDefault;
  if (name == "max") return Effort::kMax;
  throw nb::value_error("effort: 'fast', 'default' or 'max'");
}

namespace {

std::vector<Tensor> view_inputs(const std::vector<DynamicTensorInfo>& infos, const nb::list& given,
                                std::vector<Array>& arrays) {
  if (given.size() != infos.size())
    raise(Status(ErrorCode::kBadModel, "the program takes " + std::to_string(infos.size()) +
                                           " inputs, not " + std::to_string(given.size())));
  arrays.resize(infos.size());
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < infos.size(); ++i)
    tensors.push_back(view_input(given[i], infos[i].name, infos[i].dtype, arrays[i]));
  return tensors;
}

// A program, or a context of one that was loaded.
template <typename Program>
nb::list run(Program& self, const nb::list& inputs) {
  std::vector<Array> arrays;
  const std::vector<Tensor> tensors = view_inputs(self.inputs(), inputs, arrays);
  Result<std::vector<Tensor>> outputs = unlocked([&] { return self.run(tensors); });
  const Library library = inputs.size() > 0 ? library_of(inputs[0]) : Library::kNumPy;
  nb::list results;
  for (const Tensor& output : value_of(std::move(outputs)))
    results.append(array_of(output, library));
  return results;
}

void prepare(DynamicProgram& self, const nb::list& inputs) {
  std::vector<Array> arrays;
  const std::vector<Tensor> tensors = view_inputs(self.inputs(), inputs, arrays);
  check(unlocked([&] { return self.prepare(tensors); }));
}

// Of a file, with states of its own; its runs take turns.
class LoadedDynamicProgram {
 public:
  explicit LoadedDynamicProgram(const DynamicArtifact& artifact)
      : artifact_(artifact), context_(value_of(artifact.make_context())) {}
  const std::vector<DynamicTensorInfo>& inputs() const { return artifact_.inputs(); }
  const std::vector<DynamicTensorInfo>& outputs() const { return artifact_.outputs(); }
  std::vector<std::string> specialisations() const { return artifact_.specialisations(); }
  LoadedDynamicProgram beside() const { return LoadedDynamicProgram(artifact_); }
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) {
    const std::lock_guard lock(*running_);
    return context_.run(inputs);
  }
  void reset() {
    const std::lock_guard lock(*running_);
    context_.reset();
  }

 private:
  DynamicArtifact artifact_;
  DynamicContext context_;
  std::unique_ptr<std::mutex> running_ = std::make_unique<std::mutex>();
};

LoadedDynamicProgram load_file(const std::filesystem::path& path,
                               const std::optional<std::string>& public_key) {
  Result<DynamicArtifact> artifact = unlocked([&] {
    return public_key ? DynamicArtifact::load_signed(path, *public_key)
                      : DynamicArtifact::load(path);
  });
  return LoadedDynamicProgram(value_of(std::move(artifact)));
}

DynamicProgram load(const std::filesystem::path& path, std::vector<std::string> targets,
                    std::vector<std::string> exclude, int threads, const std::string& effort,
                    std::filesystem::path database, std::filesystem::path worker, bool frozen_costs,
                    bool strict_accuracy, double max_error, bool compile_on_demand,
                    std::map<std::string, std::vector<int64_t>> buckets,
                    std::map<std::string, double> padding,
                    std::map<std::string, std::string> states,
                    std::vector<std::filesystem::path> data_roots, std::string public_key) {
  DynamicOptions options;
  options.program.targets = std::move(targets);
  options.program.exclude = std::move(exclude);
  options.program.threads = threads;
  options.program.effort = effort_of(effort);
  options.program.database = std::move(database);
  options.program.worker = std::move(worker);
  options.program.frozen_costs = frozen_costs;
  options.program.strict_accuracy = strict_accuracy;
  options.program.max_error = max_error;
  options.compile_on_demand = compile_on_demand;
  options.buckets = std::move(buckets);
  options.padding = std::move(padding);
  options.states = std::move(states);
  options.data_roots = std::move(data_roots);
  options.public_key = std::move(public_key);
  Result<DynamicProgram> program = unlocked([&] { return DynamicProgram::load(path, options); });
  return value_of(std::move(program));
}

}  // namespace

void bind_dynamic_programs(nb::module_& core) {
  nb::class_<DynamicTensorInfo>(core, "DynamicTensorInfo",
                                "Name, dimensions (as text) and dtype of an input or output.")
      .def_ro("name", &DynamicTensorInfo::name)
      .def_ro("dims", &DynamicTensorInfo::dims)
      .def_prop_ro("dtype", [](const DynamicTensorInfo& info) {
        return std::string(dtype_name(info.dtype));
      });
  nb::class_<SpecialisationInfo>(core, "Specialisation",
                                 "A part of a model compiled for some shapes.")
      .def_ro("part", &SpecialisationInfo::part)
      .def_ro("shapes", &SpecialisationInfo::shapes)
      .def_ro("interpreted", &SpecialisationInfo::interpreted)
      .def_ro("quick", &SpecialisationInfo::quick)
      .def_ro("kernels", &SpecialisationInfo::kernels)
      .def_ro("compile_seconds", &SpecialisationInfo::compile_seconds)
      .def_ro("runs", &SpecialisationInfo::runs);
  nb::class_<DynamicProgram>(core, "DynamicProgram")
      .def_prop_ro("inputs", &DynamicProgram::inputs)
      .def_prop_ro("outputs", &DynamicProgram::outputs)
      .def_prop_ro("specialisations", &DynamicProgram::specialisations)
      .def("run", &run<DynamicProgram>, nb::arg("inputs"))
      .def("prepare", &prepare, nb::arg("inputs"))
      .def("prepare_buckets",
           [](DynamicProgram& self) { check(unlocked([&] { return self.prepare_buckets(); })); })
      .def(
          "save",
          [](const DynamicProgram& self, const std::filesystem::path& path,
             const std::string& signing_key) {
            check(unlocked([&] { return self.save(path, signing_key); }));
          },
          nb::arg("path"), nb::arg("signing_key"))
      .def("reset", &DynamicProgram::reset);
  nb::class_<LoadedDynamicProgram>(core, "LoadedDynamicProgram")
      .def_prop_ro("inputs", &LoadedDynamicProgram::inputs)
      .def_prop_ro("outputs", &LoadedDynamicProgram::outputs)
      .def_prop_ro("specialisations", &LoadedDynamicProgram::specialisations)
      .def("run", &run<LoadedDynamicProgram>, nb::arg("inputs"))
      .def("reset", &LoadedDynamicProgram::reset)
      .def("beside", &LoadedDynamicProgram::beside);
  core.def("load_dynamic_artifact", &load_file, nb::arg("path"), nb::arg("public_key").none());
  core.def("load_dynamic", &load, nb::arg("path"), nb::kw_only(), nb::arg("targets"),
           nb::arg("exclude"), nb::arg("threads"), nb::arg("effort"), nb::arg("database"),
           nb::arg("worker"), nb::arg("frozen_costs"), nb::arg("strict_accuracy"),
           nb::arg("max_error"), nb::arg("compile_on_demand"), nb::arg("buckets"),
           nb::arg("padding"), nb::arg("states"), nb::arg("data_roots"), nb::arg("public_key"));
}

}  // namespace collage::python
