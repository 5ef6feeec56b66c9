#include "programs.h"

#include <collage/dynamic.h>
#include <collage/progress.h>
#include <collage/report.h>
#include <collage/symbolic.h>
#include <collage/tuning.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "arrays.h"

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

// Costs by a function of Python's.
class PythonCosts : public CostModel {
 public:
  explicit PythonCosts(nb::callable function) : function_(std::move(function)) {}
  ~PythonCosts() override {
    const nb::gil_scoped_acquire locked;
    function_.reset();
  }
  PythonCosts(const PythonCosts&) = delete;
  PythonCosts& operator=(const PythonCosts&) = delete;

  std::optional<double> kernel_seconds(const Kernel& kernel) override {
    const nb::gil_scoped_acquire locked;
    std::string raised;
    try {
      return nb::cast<std::optional<double>>(
          function_(kernel.function, kernel.target, kernel.variant));
    } catch (const nb::python_error& wrong) {
      raised = raised_text(wrong);
    } catch (const nb::cast_error&) {
      raised = "it gives no number of seconds, nor None";
    }
    throw std::runtime_error("costs: " + raised);
  }

 private:
  nb::object function_;
};

struct SharedWeights {
  std::shared_ptr<WeightForms> forms = make_weight_forms();
};

// By its name in Python and in the command; ValueError for another.
Effort effort_of(const std::string& name) {
  if (name == "fast") return Effort::kFast;
  if (name == "default") return Effort::kDefault;
  if (name == "max") return Effort::kMax;
  throw nb::value_error("effort: 'fast', 'default' or 'max'");
}

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

// A model that was compiled to one program of fixed shapes, and how.
struct Origin {
  Model model;
  RunRecord record;
};

class AnyProgram {
 public:
  // Runs take turns.
  explicit AnyProgram(Program program, std::optional<Origin> origin = std::nullopt)
      : program(std::move(program)), origin(std::move(origin)) {}
  // Loaded: of fixed shapes, as many of its runs go on at once as it has contexts; of several they
  // take turns, since they may share states.
  AnyProgram(const Program& loaded, size_t contexts) : program(loaded), is_loaded(true) {
    bool fixed = true;
    for (const TensorInfo& info : program.inputs()) fixed &= info.dims.empty();
    if (fixed) pool.emplace(program, contexts);
  }

  // With a context of its own.
  AnyProgram beside() const {
    AnyProgram made(program, origin);
    made.is_loaded = is_loaded;
    made.context = std::make_unique<Context>(value_of(program.make_context()));
    return made;
  }

  Status run(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
    if (context) return context->run(inputs, outputs);
    return pool ? pool->run(inputs, outputs) : program.run(inputs, outputs);
  }
  void reset() { context ? context->reset() : program.reset(); }
  const Origin& compiled(const char* refusal) const {
    if (!origin)
      raise(Status(ErrorCode::kUsage,
                   is_loaded ? std::string("the program was loaded from an artifact: ") + refusal
                             : "the program is compiled for the shapes that come"));
    return *origin;
  }

  Program program;
  std::optional<Origin> origin;
  bool is_loaded = false;

 private:
  std::optional<ContextPool> pool;
  std::unique_ptr<Context> context;
};

AnyProgram compile(const Model& model, ProgramOptions options,
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
  return AnyProgram(value_of(std::move(program)), Origin{model, std::move(record)});
}

// Its end is waited for without the interpreter's lock, which its thread takes.
struct BackgroundTuning {
  explicit BackgroundTuning(Tuning started) : tuning(std::move(started)) {}
  ~BackgroundTuning() {
    const nb::gil_scoped_release unlocked;
    const Tuning ended = std::move(tuning);
  }
  BackgroundTuning(const BackgroundTuning&) = delete;
  BackgroundTuning& operator=(const BackgroundTuning&) = delete;
  void wait() {
    constexpr double kLook = 0.1;  // for Ctrl-C
    while (!unlocked([&] { return tuning.wait_for(kLook); }))
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    check(tuning.wait());
  }
  Tuning tuning;
};

// In the background; `better` gets each program that is faster.
BackgroundTuning* tune(const Model& model, const ProgramOptions& options, nb::object better) {
  const Clock::time_point begin = Clock::now();
  // Destroyed with the interpreter's lock, wherever the last copy goes.
  const std::shared_ptr<nb::object> callback(new nb::object(std::move(better)),
                                             [](nb::object* object) {
                                               const nb::gil_scoped_acquire locked;
                                               delete object;
                                             });
  return new BackgroundTuning(Tuning::start(model, options, [=](const Program& program) {
    RunRecord record;
    record.threads = options.threads;
    record.compile_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const nb::gil_scoped_acquire locked;
    try {
      (*callback)(AnyProgram(program, Origin{model, std::move(record)}));
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("the function that Model.tune calls");
    } catch (...) {  // of the extension's: there is nobody to tell
    }
  }));
}

nb::list run(AnyProgram& self, const nb::list& inputs) {
  std::vector<Array> arrays;
  const std::vector<Tensor> tensors = view_inputs(inputs, self.program.inputs(), arrays);
  std::vector<Tensor> outputs;
  check(unlocked([&] { return self.run(tensors, outputs); }));
  const Library library = inputs.size() > 0 ? library_of(inputs[0]) : Library::kNumPy;
  nb::list results;
  for (const Tensor& output : outputs) results.append(array_of(output, library));
  return results;
}

void run_into(AnyProgram& self, const nb::list& inputs, const nb::list& results) {
  std::vector<Array> arrays;
  const std::vector<Tensor> tensors = view_inputs(inputs, self.program.inputs(), arrays);
  const std::vector<TensorInfo>& infos = self.program.outputs();
  if (results.size() != infos.size())
    raise(Status(ErrorCode::kBadModel, "the program gives " + std::to_string(infos.size()) +
                                           " outputs, not " + std::to_string(results.size())));
  std::vector<WritableArray> writable(infos.size());
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < infos.size(); ++i)
    outputs.push_back(view_output(results[i], infos[i], writable[i]));
  check(unlocked([&] { return self.run(tensors, outputs); }));
}

void prepare(AnyProgram& self, const nb::list& inputs) {
  std::vector<Array> arrays;
  const std::vector<Tensor> tensors = view_inputs(inputs, self.program.inputs(), arrays);
  check(unlocked([&] { return self.program.prepare(tensors); }));
}

void save(const AnyProgram& self, const std::filesystem::path& path,
          const std::string& signing_key) {
  if (self.is_loaded) (void)self.compiled("copy that one");
  check(unlocked([&] {
    return self.origin ? self.program.save(self.origin->model, path, signing_key)
                       : self.program.save(path, signing_key);
  }));
}

// ProgramOptions and DynamicOptions are made empty, and their fields set by name (_options.py).
void bind_options(nb::module_& core) {
  using P = ProgramOptions;
  using D = DynamicOptions;
  nb::class_<P>(core, "Options")
      .def(nb::init<>())
      .def_rw("targets", &P::targets)
      .def_rw("exclude", &P::exclude)
      .def_rw("pin", &P::pin)
      .def_rw("devices", &P::devices)
      .def_rw("memory", &P::memory)
      .def_rw("threads", &P::threads)
      .def_rw("database", &P::database)
      .def_rw("config", &P::config)
      .def_rw("worker", &P::worker)
      .def_rw("frozen_costs", &P::frozen_costs)
      .def_rw("strict_accuracy", &P::strict_accuracy)
      .def_rw("always_measure", &P::always_measure)
      .def_rw("max_error", &P::max_error)
      .def_rw("budget_seconds", &P::budget_seconds)
      .def("set_effort",
           [](P& self, const std::string& effort) { self.effort = effort_of(effort); })
      .def("set_costs",
           [](P& self, nb::callable function) {
             self.cost_model = std::make_shared<PythonCosts>(std::move(function));
           })
      .def("share_weights",
           [](P& self, const SharedWeights& weights) { self.weight_forms = weights.forms; });
  nb::class_<D>(core, "DynamicOptions")
      .def(nb::init<>())
      .def_rw("program", &D::program)
      .def_rw("compile_on_demand", &D::compile_on_demand)
      .def_rw("buckets", &D::buckets)
      .def_rw("padding", &D::padding)
      .def_rw("states", &D::states)
      .def_rw("data_roots", &D::data_roots)
      .def_rw("public_key", &D::public_key);
}

}  // namespace

void bind_programs(nb::module_& core, nb::class_<Model>& model) {
  nb::class_<SharedWeights>(
      core, "SharedWeights",
      "Programs of one model that are compiled with the same one keep one set of weights in "
      "memory, "
      "as far as some backend can: compile one after the other, the most important first.")
      .def(nb::init<>());
  bind_options(core);
  nb::class_<SpecialisationInfo>(core, "Specialisation",
                                 "A part of a model compiled for some shapes.")
      .def_ro("part", &SpecialisationInfo::part)
      .def_ro("shapes", &SpecialisationInfo::shapes)
      .def_ro("interpreted", &SpecialisationInfo::interpreted)
      .def_ro("quick", &SpecialisationInfo::quick)
      .def_ro("kernels", &SpecialisationInfo::kernels)
      .def_ro("compile_seconds", &SpecialisationInfo::compile_seconds)
      .def_ro("runs", &SpecialisationInfo::runs);
  nb::class_<BackgroundTuning>(core, "Tuning")
      .def_prop_ro("done", [](const BackgroundTuning& self) { return self.tuning.is_done(); })
      .def("wait", &BackgroundTuning::wait)
      .def("stop", [](const BackgroundTuning& self) { self.tuning.stop(); });
  nb::class_<AnyProgram>(core, "Program")
      .def_prop_ro("inputs", [](const AnyProgram& self) { return self.program.inputs(); })
      .def_prop_ro("outputs", [](const AnyProgram& self) { return self.program.outputs(); })
      .def_prop_ro("specialisations",
                   [](const AnyProgram& self) { return self.program.specialisations(); })
      .def_prop_ro("threads", [](const AnyProgram& self) { return self.program.threads(); })
      .def("run", &run, nb::arg("inputs"))
      .def("run_into", &run_into, nb::arg("inputs"), nb::arg("outputs"))
      .def("reset", &AnyProgram::reset)
      .def("beside", &AnyProgram::beside)
      .def("prepare", &prepare, nb::arg("inputs"))
      .def(
          "prepare_buckets",
          [](AnyProgram& self) { check(unlocked([&] { return self.program.prepare_buckets(); })); })
      .def("save", &save, nb::arg("path"), nb::arg("signing_key"))
      .def("report_text",
           [](const AnyProgram& self) {
             const Origin& origin = self.compiled("its report is in the file");
             return value_of(
                 unlocked([&] { return report_text(origin.model, self.program, origin.record); }));
           })
      .def("module", [](const AnyProgram& self) {
        (void)self.compiled("its kernels are compiled");
        return value_of(self.program.module());
      });
  model.def("tune", &tune, nb::arg("options"), nb::arg("better"));
  model.def("compile", &compile, nb::arg("options"), nb::kw_only(), nb::arg("check_inputs"),
            nb::arg("progress").none());
  core.def(
      "load_program",
      [](const std::filesystem::path& path, size_t contexts) {
        return AnyProgram(value_of(unlocked([&] { return Program::load(path); })), contexts);
      },
      nb::arg("path"), nb::arg("contexts"));
  core.def(
      "load_program_bytes",
      [](const nb::bytes& data, const std::optional<std::string>& public_key, size_t contexts) {
        const void* begin = data.data();
        const size_t size = data.size();
        Result<Program> program = unlocked([&] {
          return public_key ? Program::load_signed(begin, size, *public_key)
                            : Program::load(begin, size);
        });
        return AnyProgram(value_of(std::move(program)), contexts);
      },
      nb::arg("data"), nb::arg("public_key").none(), nb::arg("contexts"));
  core.def(
      "compile_symbolic",
      [](const SymbolicModel& model, const DynamicOptions& options) {
        return AnyProgram(value_of(unlocked([&] { return Program::compile(model, options); })));
      },
      nb::arg("model"), nb::arg("options"));
  core.def(
      "load_dynamic",
      [](const std::filesystem::path& path, const DynamicOptions& options) {
        return AnyProgram(value_of(unlocked([&] { return Program::compile(path, options); })));
      },
      nb::arg("path"), nb::arg("options"));
}

}  // namespace collage::python
