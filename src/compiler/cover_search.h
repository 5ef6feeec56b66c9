// Between costs and search: hands the costed candidates to the search, measures what a cover needs
// and nobody measured (the host's kernels), and gives covers in terms of candidates: the cheapest
// few, and one for every single backend.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/costing.h"
#include "compiler/lowering.h"
#include "search/cover.h"

namespace collage {

struct CoverKernel {
  size_t candidate;    // into the costed candidates
  size_t variant;      // into that candidate's costs
  double seconds = 0;  // its part of plain_seconds
};

struct NamedCover {  // a cover in terms of costed candidates
  std::string name;  // "cover 1" … or the backend
  bool single_backend = false;
  std::vector<CoverKernel> kernels;
  double predicted_seconds = 0;                    // what the search added up
  std::vector<ChosenConversion> conversions = {};  // as the search chose them, their seconds with
                                                   // the launch
  double plain_seconds = 0;  // the same without charges for switching between thread pools
  size_t switches = 0;       // between thread pools, the last kernel followed by the first
  bool mostly_one = false;   // one backend, the rest by whoever is fastest
};

struct CoverSearch {
  std::vector<NamedCover> covers;  // cheapest first, those of mostly one backend among them, then
                                   // the single-backend covers
  double lower_bound_seconds = 0;  // what the search adds up is no less for any cover
  bool exact = false;
  size_t states = 0;
  double search_seconds = 0;  // in the search alone, without measuring
  // What the cheapest cover may be too dear by, as a part of it.
  double gap() const {
    double cheapest = covers[0].predicted_seconds;
    return cheapest > 0 ? 1 - lower_bound_seconds / cheapest : 0;
  }
};

inline constexpr size_t kTopCovers = 8;
// A single-backend cover exists where the backend does at least this part of the arithmetic; one of
// mostly that backend also where it does this part of what is moved.
inline constexpr double kSingleBackendWork = 0.9;

class CoverProblem;
NamedCover named_cover(const CoverProblem& problem, std::string name, bool single,
                       const Cover& cover);

// Costs of host candidates are filled in where a cover uses them.
Result<CoverSearch> find_covers(const DataflowGraph& graph,
                                std::vector<CostedCandidate>& candidates, MeasuredCosts& costs);
// The same where some targets must not meet in one cover: for each set of targets (`specs` by
// index) that may, together cheapest first.
Result<CoverSearch> find_compatible_covers(const DataflowGraph& graph,
                                           std::vector<CostedCandidate>& candidates,
                                           MeasuredCosts& costs,
                                           const std::vector<PartitionSpecPtr>& specs,
                                           const std::vector<std::vector<size_t>>& sets);

KernelChoice kernel_choice(const CostedCandidate& candidate, size_t variant);
// The text that identifies a kernel of one model: its nodes, target and variant.
std::string kernel_text(const CostedCandidate& candidate, size_t variant);
// The text that identifies a cover among those of one model: its kernels'.
std::string cover_text(const NamedCover& cover, const std::vector<CostedCandidate>& candidates);
// Whether some kernel of the cover rounds to a smaller float type.
bool is_lowered(const NamedCover& cover, const std::vector<CostedCandidate>& candidates);

}  // namespace collage
