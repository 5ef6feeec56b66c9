// Schedule search: draws variants from a backend's space of schedules (backend/schedule_space.h).
// The first are what estimates favour, those with a decision changed, and random ones; then they
// are bred from those that were fastest: an option of each decision from one of two parents, some
// changed. It is repeatable: the
// same seed and the same costs give the same variants. This is the search of Ansor (Zheng et al.,
// OSDI 2020), without its cost model: kernels are timed.
//
//   ScheduleSearch search(space, seed);
//   for (auto batch = search.propose(8); !batch.empty(); batch = search.propose(8))
//     … times each, search.learn(variant, seconds) …
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "backend/schedule_space.h"

namespace collage {

class ScheduleSearch {
 public:
  ScheduleSearch(ScheduleSpace space, uint64_t seed);

  // At most so many variants, none of them a second time; none where no new ones are found.
  std::vector<Variant> propose(size_t count);
  // What a variant that was proposed takes; infinity where it fails.
  void learn(const Variant& variant, double seconds);

 private:
  using Choice = ScheduleSpace::Choice;
  struct Individual {
    Choice choice;
    double seconds;
  };
  double chance();
  Choice random_choice();
  Choice drawn_choice();
  Choice child();
  const Choice& parent();

  ScheduleSpace space_;
  std::mt19937_64 random_;
  std::map<std::string, Choice> proposed_;  // by the variant's name
  size_t started_ = 0;                      // of those in space_.start
  size_t learnt_ = 0;
  std::vector<Individual> population_;  // fastest first
};

}  // namespace collage
