#include "search/evolution.h"

#include <algorithm>
#include <cmath>

namespace collage {

namespace {

constexpr size_t kPopulation = 8;
constexpr size_t kTries = 8;       // for one child that nobody knows
constexpr double kFavour = 0.2;    // how much cheaper a known cover's kernels are made
constexpr double kMutation = 0.2;  // spread of a mutated gene's factor
constexpr double kMutated = 4;     // genes of a child that mutate, on average

}  // namespace

Evolution::Evolution(const SearchProblem& problem, std::vector<size_t> genes, uint64_t seed)
    : problem_(problem), genes_(std::move(genes)), random_(seed) {
  for (size_t gene : genes_) gene_count_ = std::max(gene_count_, gene + 1);
}

Evolution::Kernels Evolution::kernels_of(const Cover& cover) {
  Kernels kernels;
  for (const ChosenKernel& kernel : cover.kernels)
    kernels.emplace(kernel.candidate, kernel.variant);
  return kernels;
}

Evolution::Genome Evolution::favouring(const Cover& cover) const {
  Genome genome(gene_count_, 0);
  for (const ChosenKernel& kernel : cover.kernels) genome[genes_[kernel.candidate]] = -kFavour;
  return genome;
}

void Evolution::learn(const Cover& cover, double seconds) {
  Kernels kernels = kernels_of(cover);
  known_.insert(kernels);
  auto bred = std::find_if(bred_.begin(), bred_.end(),
                           [&](const auto& known) { return known.first == kernels; });
  Individual individual{bred != bred_.end() ? bred->second : favouring(cover), std::move(kernels),
                        seconds};
  auto slower = [](double seconds, const Individual& other) { return seconds < other.seconds; };
  population_.insert(std::upper_bound(population_.begin(), population_.end(), seconds, slower),
                     std::move(individual));
  if (population_.size() > kPopulation) population_.pop_back();
}

const Evolution::Individual& Evolution::select() {
  auto pick = [&] { return random_() % population_.size(); };
  return population_[std::min(pick(), pick())];
}

Evolution::Genome Evolution::child() {
  const Genome &mother = select().genome, &father = select().genome;
  std::normal_distribution<double> change(0, kMutation);
  std::uniform_real_distribution<double> chance(0, 1);
  Genome genome(gene_count_);
  for (size_t gene = 0; gene < gene_count_; ++gene) {
    genome[gene] = random_() % 2 ? mother[gene] : father[gene];
    if (chance(random_) * static_cast<double>(gene_count_) < kMutated)
      genome[gene] += change(random_);
  }
  return genome;
}

Result<Cover> Evolution::decode(const Genome& genome) const {
  SearchProblem changed = problem_;
  for (size_t c = 0; c < changed.candidates.size(); ++c)
    for (VariantCost& variant : changed.candidates[c].variants)
      variant.seconds *= std::exp(genome[genes_[c]]);
  SearchOptions options;
  options.top_k = 1;
  Cover cover = std::move(TRY(search_covers(changed, options)).covers[0]);
  for (const ChosenKernel& kernel : cover.kernels)
    cover.seconds += problem_.candidates[kernel.candidate].variants[kernel.variant].seconds -
                     changed.candidates[kernel.candidate].variants[kernel.variant].seconds;
  return cover;
}

std::vector<Cover> Evolution::breed(size_t count) {
  std::vector<Cover> result;
  for (size_t tries = 0; tries < kTries * count && result.size() < count && !population_.empty();
       ++tries) {
    Genome genome = child();
    Result<Cover> cover = decode(genome);
    if (!cover.ok()) continue;
    Kernels kernels = kernels_of(*cover);
    if (!known_.insert(kernels).second) continue;
    bred_.emplace_back(std::move(kernels), std::move(genome));
    result.push_back(std::move(cover).value());
  }
  return result;
}

}  // namespace collage
