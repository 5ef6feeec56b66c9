// What two specialisations of one model take together: the first model is compiled, then the second
// one, with and without ProgramOptions::weight_forms; of each the
// shortest of some runs, and the memory that is no file's, models dropped. With COLLAGE_KERNELS in
// the environment also how kernels keep their weights.
//
//   shared_weights_bench FIRST.onnx SECOND.onnx [TARGET...]
#include <collage/collage.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "backend/targets/backends.h"
#include "base/resident_memory.h"
#include "base/stopwatch.h"
#include "compiler/compile.h"
#include "measure/worker_loop.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

double megabytes() { return static_cast<double>(anonymous_bytes()) / (1 << 20); }

struct Compiled {
  Program program;
  std::vector<Tensor> inputs;

  double milliseconds() {
    std::vector<double> times;
    std::vector<Tensor> outputs;
    for (int i = 0; i < 30; ++i) {
      const Stopwatch watch;
      if (const Status status = program.run(inputs, outputs); !status.ok())
        std::printf("%s\n", status.to_string().c_str());
      times.push_back(watch.seconds() * 1e3);
    }
    return *std::min_element(times.begin(), times.end());
  }
};

Result<Compiled> compile(const char* path, const ProgramOptions& options) {
  const Model model = TRY(Model::load(path));
  std::vector<Tensor> inputs = TRY(synthetic_inputs(model.impl().module.main(), 1));
  return Compiled{TRY(Program::compile(model, options)), std::move(inputs)};
}

Status run(const char* first_path, const char* second_path, ProgramOptions options) {
  for (bool together : {false, true}) {
    options.weight_forms = together ? make_weight_forms() : nullptr;
    const double before = megabytes();
    Compiled first = TRY(compile(first_path, options));
    const double one = megabytes() - before;
    Compiled second = TRY(compile(second_path, options));
    const double two = megabytes() - before;
    std::printf("%-12s first %.0f MB, both %.0f MB (%.2f); first %.2f ms, second %.2f ms\n",
                together ? "weight forms" : "apart", one, two, two / one, first.milliseconds(),
                second.milliseconds());
    for (const Compiled* each : {&first, &second})
      for (const ReportedPlan::Kernel& kernel : each->program.impl().report.kernels)
        if (kernel.flops > 1e6 && std::getenv("COLLAGE_KERNELS") != nullptr)
          std::printf("    %s %s [%s]\n", kernel.name.c_str(), kernel.variant.name.c_str(),
                      kernel.variant.weights.c_str());
    std::fflush(stdout);
  }
  return {};
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "worker") == 0) {
    collage::register_all();
    return collage::run_worker();
  }
  if (argc < 3) return 2;
  collage::ProgramOptions options;
  options.effort = collage::Effort::kFast;
  options.worker = std::filesystem::read_symlink("/proc/self/exe");
  for (int i = 3; i < argc; ++i) options.targets.push_back(argv[i]);
  const collage::Status status = collage::run(argv[1], argv[2], options);
  if (!status.ok()) std::printf("%s\n", status.to_string().c_str());
  return status.ok() ? 0 : 1;
}
