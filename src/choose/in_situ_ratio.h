// The in-situ ratio of a model: what the kernels of its chosen cover take in their place in the
// program, as a multiple of what they were measured to take in isolation. Each was measured in
// minutes of its own, on tensors and in caches as most models leave them; machines that others use
// too change their speed within the hour, and how much of a shared cache a model has shows only
// when it runs. Timed once more right after the covers were, one by one, amid the others
// (in_situ_costs.h), they say by what all costs of this model are off. It explains a run; it is no
// part of what is predicted, of the search, or of any choice.
#pragma once

#include <optional>
#include <string>

#include "choose/cover_search.h"
#include "cost/database.h"
#include "measure/effort.h"
#include "measure/noise_gate.h"
#include "runtime/executor.h"

namespace collage {

// Of a model by its key (ChooseOptions::source_key); a damaged row is none.
std::optional<double> known_in_situ_ratio(CostDatabase& database, const std::string& source_key,
                                          const std::string& context);

struct InSituOptions {
  std::string source_key, context;  // as ChooseOptions
  int threads = 1;
  CacheState cache = CacheState::kStreaming;
  Effort effort = Effort::kDefault;
};

// Times the kernels of that cover's program; the ratio goes into the database.
Status measure_in_situ_ratio(const NamedCover& cover, Executor& executor,
                             std::span<const Tensor> inputs, const InSituOptions& options,
                             CostDatabase& database, NoiseGate& gate);

}  // namespace collage
