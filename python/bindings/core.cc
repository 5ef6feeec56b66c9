// collage._core: the public interface of libcollage as Python sees it. What Python code would write
// by hand around it (names, dictionaries, documentation) is in python/collage/__init__.py.
//
// Loading, compiling, running and saving release the interpreter's lock.
#include <collage/artifact.h>
#include <collage/collage.h>
#include <collage/operators.h>
#include <collage/plugin.h>
#include <collage/progress.h>
#include <collage/report.h>
#include <collage/version.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <exception>
#include <utility>

#include "arrays.h"
#include "contents.h"
#include "dynamic.h"
#include "expressions.h"
#include "functions.h"
#include "modules.h"
#include "programs.h"

namespace collage::python {

namespace {

using Clock = std::chrono::steady_clock;

// Hands progress to a function of Python's, and looks whether the user pressed Ctrl-C. Either may
// raise: the compilation is then asked to end, and the exception goes on to the caller.
class Watcher {
 public:
  explicit Watcher(nb::object callback) : callback_(std::move(callback)) {}

  void update(std::string_view phase, size_t done, size_t total, size_t cached, size_t failed) {
    const Clock::time_point now = Clock::now();
    if (raised_ || (now - last_ < kInterval && done < total)) return;
    last_ = now;
    const nb::gil_scoped_acquire locked;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!callback_.is_none())
        callback_(nb::str(phase.data(), phase.size()), done, total, cached, failed);
    } catch (...) {
      raised_ = std::current_exception();
      set_interrupted(true);
    }
  }

  void rethrow() {
    if (!raised_) return;
    set_interrupted(false);
    std::rethrow_exception(std::exchange(raised_, nullptr));
  }

 private:
  static constexpr auto kInterval = std::chrono::milliseconds(100);
  nb::object callback_;
  Clock::time_point last_;
  std::exception_ptr raised_;
};

struct SharedWeights {
  std::shared_ptr<WeightForms> forms = make_weight_forms();
};

std::vector<Tensor> view_inputs(const nb::list& given, const std::vector<TensorInfo>& infos,
                                std::vector<Array>& arrays) {
  if (given.size() != infos.size())
    raise(Status(ErrorCode::kBadModel, "the program takes " + std::to_string(infos.size()) +
                                           " inputs, not " + std::to_string(given.size())));
  arrays.resize(infos.size());
  std::vector<Tensor> tensors;
  tensors.reserve(infos.size());
  for (size_t i = 0; i < infos.size(); ++i)
    tensors.push_back(view_input(given[i], infos[i], arrays[i]));
  return tensors;
}

void init_options(ProgramOptions* self, std::vector<std::string> targets,
                  std::vector<std::string> exclude, std::vector<std::string> pin,
                  std::string devices, std::vector<std::string> memory, int threads,
                  const std::string& effort, std::filesystem::path database,
                  std::filesystem::path config, std::filesystem::path worker, bool frozen_costs,
                  bool strict_accuracy, bool always_measure, double max_error,
                  const SharedWeights* shared_weights) {
  ProgramOptions options;
  options.targets = std::move(targets);
  options.exclude = std::move(exclude);
  options.pin = std::move(pin);
  options.devices = std::move(devices);
  options.memory = std::move(memory);
  options.threads = threads;
  options.effort = effort_of(effort);
  options.database = std::move(database);
  options.config = std::move(config);
  options.worker = std::move(worker);
  options.frozen_costs = frozen_costs;
  options.strict_accuracy = strict_accuracy;
  options.always_measure = always_measure;
  options.max_error = max_error;
  if (shared_weights != nullptr) options.weight_forms = shared_weights->forms;
  new (self) ProgramOptions(std::move(options));
}

CompiledProgram compile(const Model& model, ProgramOptions options,
                        const std::vector<nb::list>& check_inputs, nb::object progress) {
  std::vector<std::vector<Array>> arrays(check_inputs.size());
  for (size_t i = 0; i < check_inputs.size(); ++i)
    options.check_inputs.push_back(view_inputs(check_inputs[i], model.inputs(), arrays[i]));

  Watcher watcher(std::move(progress));
  const Clock::time_point begin = Clock::now();
  Result<Program> program = unlocked([&] {
    return compile_with_progress(
        model, options,
        [&](std::string_view phase, size_t done, size_t total, size_t cached, size_t failed) {
          watcher.update(phase, done, total, cached, failed);
        });
  });
  watcher.rethrow();
  RunRecord record;
  record.threads = options.threads;
  record.compile_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return CompiledProgram(model, value_of(std::move(program)), std::move(record));
}

nb::list run(AnyProgram& self, const nb::list& inputs) {
  std::vector<Array> arrays;
  const std::vector<Tensor> tensors = view_inputs(inputs, self.inputs(), arrays);
  std::vector<Tensor> outputs;
  check(unlocked([&] { return self.run(tensors, outputs); }));
  const Library library = inputs.size() > 0 ? library_of(inputs[0]) : Library::kNumPy;
  nb::list results;
  for (const Tensor& output : outputs) results.append(array_of(output, library));
  return results;
}

void run_into(AnyProgram& self, const nb::list& inputs, const nb::list& results) {
  std::vector<Array> arrays;
  const std::vector<Tensor> tensors = view_inputs(inputs, self.inputs(), arrays);
  const std::vector<TensorInfo>& infos = self.outputs();
  if (results.size() != infos.size())
    raise(Status(ErrorCode::kBadModel, "the program gives " + std::to_string(infos.size()) +
                                           " outputs, not " + std::to_string(results.size())));
  std::vector<WritableArray> writable(infos.size());
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < infos.size(); ++i)
    outputs.push_back(view_output(results[i], infos[i], writable[i]));
  check(unlocked([&] { return self.run(tensors, outputs); }));
}

}  // namespace

}  // namespace collage::python

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
      .def_prop_ro("dtype",
                   [](const TensorInfo& info) { return std::string(dtype_name(info.dtype)); })
      .def("__repr__", [](const TensorInfo& info) {
        return "TensorInfo('" + info.name + "', " + shape_to_string(info.shape) + ", '" +
               std::string(dtype_name(info.dtype)) + "')";
      });

  nb::class_<SharedWeights>(
      core, "SharedWeights",
      "Programs of one model that are compiled with the same one keep one set of weights in "
      "memory, "
      "as far as some backend can: compile one after the other, the most important first.")
      .def(nb::init<>());
  nb::class_<ProgramOptions>(core, "Options")
      .def("__init__", &init_options, nb::kw_only(), nb::arg("targets"), nb::arg("exclude"),
           nb::arg("pin"), nb::arg("devices"), nb::arg("memory"), nb::arg("threads"),
           nb::arg("effort"), nb::arg("database"), nb::arg("config"), nb::arg("worker"),
           nb::arg("frozen_costs"), nb::arg("strict_accuracy"), nb::arg("always_measure"),
           nb::arg("max_error"), nb::arg("shared_weights").none());
  bind_expressions(core);
  bind_contents(core);
  nb::class_<Model> model(core, "Model");
  model.def_prop_ro("inputs", &Model::inputs)
      .def_prop_ro("outputs", &Model::outputs)
      .def("compile", &compile, nb::arg("options"), nb::kw_only(), nb::arg("check_inputs"),
           nb::arg("progress").none());
  bind_modules(core, model);

  nb::class_<AnyProgram>(core, "Program")
      .def_prop_ro("inputs", [](const AnyProgram& self) { return self.inputs(); })
      .def_prop_ro("outputs", [](const AnyProgram& self) { return self.outputs(); })
      .def("run", &run, nb::arg("inputs"))
      .def("run_into", &run_into, nb::arg("inputs"), nb::arg("outputs"));

  nb::class_<CompiledProgram, AnyProgram>(core, "CompiledProgram")
      .def("report_text",
           [](const CompiledProgram& self) {
             return value_of(unlocked([&] { return self.report(); }));
           })
      .def(
          "save",
          [](const CompiledProgram& self, const std::filesystem::path& path,
             const std::string& signing_key) {
            check(unlocked([&] { return self.save(path, signing_key); }));
          },
          nb::arg("path"), nb::arg("signing_key"))
      .def("module", [](const CompiledProgram& self) { return value_of(self.module()); });

  nb::class_<Artifact>(core, "Artifact").def_prop_ro("threads", &Artifact::threads);
  nb::class_<LoadedProgram, AnyProgram>(core, "LoadedProgram")
      .def(nb::init<const Artifact&, size_t>(), nb::arg("artifact"), nb::arg("contexts"));
  core.def(
      "load_artifact",
      [](const std::filesystem::path& path) {
        return value_of(unlocked([&] { return Artifact::load(path); }));
      },
      nb::arg("path"));
  core.def(
      "load_artifact_bytes",
      [](const nb::bytes& data, const std::optional<std::string>& public_key) {
        const void* begin = data.data();
        const size_t size = data.size();
        return value_of(unlocked([&] {
          return public_key ? Artifact::load_signed(begin, size, *public_key)
                            : Artifact::load(begin, size);
        }));
      },
      nb::arg("data"), nb::arg("public_key").none());

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
  bind_dynamic_programs(core);
  bind_functions(core);
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
