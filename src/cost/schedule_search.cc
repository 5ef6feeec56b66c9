#include "cost/schedule_search.h"

#include <algorithm>
#include <cmath>

namespace collage {

namespace {

constexpr size_t kPopulation = 8;
constexpr size_t kFirst = 16;     // that are timed before any is bred
constexpr size_t kTries = 16;     // for one variant that nobody knows
constexpr double kMutated = 1.5;  // decisions of a child that change, on average
constexpr double kRandom = 0.15;  // part of the later ones that is not bred

}  // namespace

ScheduleSearch::ScheduleSearch(ScheduleSpace space, uint64_t seed)
    : space_(std::move(space)), random_(seed) {}

// Between 0 and 1. Not by a distribution of the standard library: those differ between
// implementations.
double ScheduleSearch::chance() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

ScheduleSearch::Choice ScheduleSearch::random_choice() {
  Choice choice;
  for (const size_t options : space_.options) choice.push_back(random_() % options);
  return choice;
}

// One of those that estimates favour with a decision changed, or any.
ScheduleSearch::Choice ScheduleSearch::drawn_choice() {
  if (space_.start.empty() || random_() % 3 == 0) return random_choice();
  Choice choice = space_.start[random_() % space_.start.size()];
  const size_t changed = random_() % choice.size();
  choice[changed] = random_() % space_.options[changed];
  return choice;
}

const ScheduleSearch::Choice& ScheduleSearch::parent() {
  const auto pick = [&] { return random_() % population_.size(); };
  const size_t one = pick(), other = pick();
  return population_[std::min(one, other)].choice;
}

ScheduleSearch::Choice ScheduleSearch::child() {
  const Choice mother = parent(), father = parent();
  Choice choice;
  for (size_t d = 0; d < space_.options.size(); ++d) {
    choice.push_back(random_() % 2 == 0 ? mother[d] : father[d]);
    if (chance() * static_cast<double>(space_.options.size()) < kMutated)
      choice[d] = random_() % space_.options[d];
  }
  return choice;
}

std::vector<Variant> ScheduleSearch::propose(size_t count) {
  std::vector<Variant> variants;
  if (space_.empty()) return variants;
  const auto add = [&](Choice choice) {
    Variant variant = space_.variant(choice);
    if (proposed_.emplace(variant.name, std::move(choice)).second)
      variants.push_back(std::move(variant));
  };
  while (started_ < space_.start.size() && variants.size() < count) add(space_.start[started_++]);
  for (size_t tries = 0; tries < kTries * count && variants.size() < count; ++tries) {
    const bool bred = learnt_ >= kFirst && population_.size() > 1 && chance() >= kRandom;
    add(bred ? child() : drawn_choice());
  }
  return variants;
}

void ScheduleSearch::learn(const Variant& variant, double seconds) {
  const auto known = proposed_.find(variant.name);
  if (known == proposed_.end()) return;
  ++learnt_;
  if (!std::isfinite(seconds)) return;
  const auto slower = [](double one, const Individual& other) { return one < other.seconds; };
  population_.insert(std::upper_bound(population_.begin(), population_.end(), seconds, slower),
                     {known->second, seconds});
  if (population_.size() > kPopulation) population_.pop_back();
}

}  // namespace collage
