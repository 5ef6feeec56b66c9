// Evolutionary refinement: covers that predictions do not favour, bred by what whole programs were
// measured to take. Collage's paper does this on top of its search for what sums of kernels cannot
// see: how kernels disturb each other.
//
// A genome is a factor on the cost of each gene, a kind of kernel (one function on one target, in
// however many layers), and what it stands for is the cheapest cover by the costs so changed. So
// every genome is a cover that can run, conversions and all, and crossing two covers is mixing
// their factors.
//
//   Evolution evolution(problem, genes, seed);
//   evolution.learn(cover, seconds) … for those that were timed
//   for (const Cover& cover : evolution.breed(6)) …          times them, learns, breeds again
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "search/search.h"

namespace collage {

class Evolution {
 public:
  // `genes` gives the gene of each of the problem's candidates, numbered from 0. The problem must
  // outlive this.
  Evolution(const SearchProblem& problem, std::vector<size_t> genes, uint64_t seed);

  // A cover took that long. Covers that breed() did not give get a genome that favours their
  // kernels.
  void learn(const Cover& cover, double seconds);
  // New covers, at most `count`; fewer where breeding finds none that nobody knows.
  std::vector<Cover> breed(size_t count);

 private:
  using Genome = std::vector<double>;                   // by gene: logarithm of the factor
  using Kernels = std::set<std::pair<size_t, size_t>>;  // candidates and variants: what is the same
  struct Individual {
    Genome genome;
    Kernels kernels;
    double seconds;
  };

  static Kernels kernels_of(const Cover& cover);
  Genome favouring(const Cover& cover) const;
  const Individual& select();
  Genome child();
  Result<Cover> decode(const Genome& genome) const;

  const SearchProblem& problem_;
  std::vector<size_t> genes_;
  size_t gene_count_ = 0;
  std::mt19937_64 random_;
  std::vector<Individual> population_;  // fastest first
  std::set<Kernels> known_;
  std::vector<std::pair<Kernels, Genome>> bred_;
};

}  // namespace collage
