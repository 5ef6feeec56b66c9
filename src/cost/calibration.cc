#include "cost/calibration.h"

#include <algorithm>

#include "base/statistics.h"
#include "cost/measurer.h"

namespace collage {

namespace {

constexpr int kRepeats = 7, kAttempts = 3;

// So short, and of one thread, that medians of a busy machine are those of a quiet one.
constexpr std::pair<const char*, const char*> kKernels[] = {
    {"dense",
     "fn (%x: Tensor[(128, 128), float32], %y: Tensor[(128, 128), float32]) { nn.dense(%x, %y) }"},
    {"add",
     "fn (%x: Tensor[(128, 256), float32], %y: Tensor[(128, 256), float32]) { add(%x, %y) }"},
    {"softmax", "fn (%x: Tensor[(64, 256), float32]) { nn.softmax(%x) }"},
    {"relu", "fn (%x: Tensor[(128, 256), float32]) { nn.relu(%x) }"},
};

// The first of these that this build has.
std::string measuring_backend() {
  for (const char* name : {"onednn", "native", "reference"})
    if (find_backend(name) != nullptr) return name;
  return "";
}

Result<std::vector<CalibrationFigure>> calibrate_once(Measurer& measurer,
                                                      const std::string& backend) {
  std::vector<MeasureTask> tasks;
  for (const auto& [name, text] : kKernels)
    tasks.push_back(measurer.task_of(TimeRequest{{text}}, {backend}));
  std::vector<std::vector<double>> costs(tasks.size()), least = costs;
  int disturbed = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const std::vector<Measurer::Answer> answers = TRY(measurer.ask_together(tasks));
    for (size_t k = 0; k < tasks.size(); ++k) {
      if (!answers[k]) return std::vector<CalibrationFigure>();
      disturbed += k == 0 && answers[k]->at(0).conditions.disturbed;
      const MeasuredVariant* fastest =
          fastest_variant(answers[k]->at(0), [](const MeasuredVariant&) { return true; });
      if (fastest == nullptr) continue;
      const Measured& figure = *measured(fastest->cost);
      costs[k].push_back(std::max(figure.median, 1e-12));
      least[k].push_back(std::max(figure.p10, 1e-12));
      // The others are not of interest any more.
      auto& request = std::get<TimeRequest>(tasks[k].request);
      request.named = {{backend, {fastest->variant}}};
      request.only_named = true;
    }
  }
  constexpr double kSecond = 1.0 / (kRepeats - 1);  // a rank
  std::vector<CalibrationFigure> figures;
  for (size_t k = 0; k < tasks.size(); ++k)
    if (!costs[k].empty())
      figures.push_back({kKernels[k].first, *std::min_element(least[k].begin(), least[k].end()),
                         percentile(costs[k], 1 - kSecond) / percentile(costs[k], kSecond),
                         disturbed > kRepeats / 2});
  return figures;
}

}  // namespace

Result<std::vector<CalibrationFigure>> calibrate(const CostOptions& options) {
  const std::unique_ptr<CostDatabase> nowhere = CostDatabase::in_memory();
  CostStore store(*nowhere, options);
  Measurer measurer(store, options);
  const std::string backend = measuring_backend();
  std::vector<CalibrationFigure> figures;
  if (backend.empty()) return figures;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    figures = TRY(calibrate_once(measurer, backend));
    if (std::all_of(figures.begin(), figures.end(), [](const auto& figure) {
          return figure.spread <= kMostSpread && !figure.disturbed;
        }))
      break;
  }
  return figures;
}

}  // namespace collage
