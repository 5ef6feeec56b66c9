// The pace of a model: what the kernels of its chosen cover take in their place in the program, as
// a multiple of what they were measured to take. Each was measured in minutes of its own, on
// tensors and in caches as most models leave them; machines that others use too change their pace
// within the hour, and how much of a shared cache a model has shows only when it runs. Timed once
// more right after the covers were, one by one, amid the others (costs_in_place.h), they say by
// what all costs of this model are off. Predictions are scaled by it; the search is not, nor is any
// choice.
#pragma once

#include <map>
#include <string>

#include "compiler/cover_search.h"
#include "cost/database.h"
#include "cost/effort.h"
#include "runtime/executor.h"

namespace collage {

// Of models in the database, each by its key (ChooseOptions::source_key).
using Paces = std::map<std::string, double>;
Paces known_paces(CostDatabase& database, const std::string& context);
// 1 where it is not known.
double pace_of(const std::string& source_key, const Paces& paces);

struct PaceOptions {
  int threads = 1;
  CacheState cache = CacheState::kStreaming;
  Effort effort = Effort::kDefault;
  double patience = 0;  // seconds for quiet moments
};

// Times the kernels of that cover's program; the pace goes into the database.
Status measure_pace(const NamedCover& cover, Executor& executor, std::span<const Tensor> inputs,
                    const PaceOptions& options, const std::string& source_key,
                    const std::string& context, CostDatabase& database);

}  // namespace collage
