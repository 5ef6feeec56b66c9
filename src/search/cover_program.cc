#include "search/cover_program.h"

#include <algorithm>
#include <map>

#include "base/thread_stopwatch.h"

namespace collage::search {

namespace {

constexpr int kMissing = -2, kGiven = -1;  // in place of the arc that makes a form

}  // namespace

CoverProgram::CoverProgram(const CompactProblem& compact)
    : compact_(compact),
      supplies_(compact.groups.size()),
      kernel_of_(compact.problem->candidates.size()),
      depth_(compact.nodes.size(), 0) {
  const auto add_variable = [&](double cost) {
    costs_.push_back(cost);
    return program_.add_variable(cost);
  };
  std::vector<Row> covered(compact.nodes.size(), Row{{}, 1, 1});
  for (uint32_t g = 0; g < compact.groups.size(); ++g)
    supplies_[g].givers.resize(compact.groups[g].forms.size());
  std::vector<std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>>> wanted(
      compact.groups.size());
  for (uint32_t c = 0; c < compact.columns.size(); ++c) {
    const Column& column = compact.columns[c];
    const int variable = add_variable(column.cost);
    kernel_of_[column.choice.candidate] = column.kernel;
    for (uint32_t node : column.nodes) covered[node].terms.push_back({variable, 1});
    for (size_t k = 0; k < column.inputs.size(); ++k)
      wanted[column.inputs[k].group][{column.readers[k], column.inputs[k].form}].push_back(c);
    for (const Use& use : column.outputs) supplies_[use.group].givers[use.form].push_back(c);
  }
  for (Row& row : covered) program_.add_row(std::move(row));
  limit_errors();
  for (uint32_t g = 0; g < compact.groups.size(); ++g) {
    for (auto& [place, columns] : wanted[g])
      supplies_[g].wants.push_back({place.first, place.second, std::move(columns)});
    number_arcs(g);
    const Group& group = compact.groups[g];
    const auto only = [&](uint32_t form) {
      Forms forms(group.forms.size(), false);
      forms[form] = true;
      return forms;
    };
    for (const Supply::Want& want : supplies_[g].wants) {
      std::vector<Term> terms;
      for (uint32_t c : want.columns) terms.push_back({static_cast<int>(c), 1});
      add_supply_row(g, only(want.form), std::move(terms));
    }
    if (group.is_result) add_supply_row(g, only(group.at_caller), {}, 1);
    for (const Arc& arc : supplies_[g].arcs)
      add_supply_row(g, only(arc.from), {{arc.variable, 1}}, 0, arc.to);
    for (uint32_t reader : group.readers)
      if (group.root >= 0)
        depth_[reader] = std::max(depth_[reader], depth_[static_cast<size_t>(group.root)] + 1);
  }
}

// As parts of what is allowed, which the solvers' tolerances fit.
void CoverProgram::limit_errors() {
  const double most = compact_.problem->max_error;
  Row row{{}, -kUnbounded, 1};
  for (size_t c = 0; c < compact_.columns.size(); ++c)
    if (const double error = compact_.columns[c].error; error > 0)
      row.terms.push_back({static_cast<int>(c), (error / most) * (error / most)});
  if (!row.terms.empty()) program_.add_row(std::move(row));
}

// A variable for each conversion that may be a part of a cheapest cover.
void CoverProgram::number_arcs(uint32_t g) {
  const Group& group = compact_.groups[g];
  const double launch = compact_.problem->launch_penalty;
  const uint32_t n = static_cast<uint32_t>(group.forms.size());
  const auto cost = [&](uint32_t from, uint32_t to) { return group.conversion(from, to) + launch; };
  std::vector<bool> wanted(n, false);
  wanted[group.at_caller] = group.is_result;
  for (const Supply::Want& want : supplies_[g].wants) wanted[want.form] = true;
  for (uint32_t from = 0; from < n; ++from)
    for (uint32_t to = 0; to < n; ++to) {
      if (from == to || cost(from, to) == kInfinity) continue;
      bool is_shortest = true, leads_on = wanted[to];
      for (uint32_t third = 0; third < n; ++third) {
        if (third == from || third == to) continue;
        is_shortest = is_shortest && cost(from, third) + cost(third, to) >= cost(from, to);
        leads_on = leads_on || cost(to, third) < cost(from, third);
      }
      if (!is_shortest || !leads_on) continue;
      costs_.push_back(cost(from, to));
      supplies_[g].arcs.push_back({from, to, program_.add_variable(cost(from, to))});
    }
}

// What `terms` want of the forms together must be supplied by something outside of them. `except`:
// conversions from that form do not count.
void CoverProgram::add_supply_row(uint32_t g, const Forms& forms, std::vector<Term> terms,
                                  double wanted, std::optional<uint32_t> except) {
  const Group& group = compact_.groups[g];
  if (group.root < 0 && forms[group.at_caller]) return;  // a parameter exists there
  for (uint32_t form = 0; form < forms.size(); ++form)
    if (forms[form])
      for (uint32_t c : supplies_[g].givers[form]) terms.push_back({static_cast<int>(c), -1});
  for (const Arc& arc : supplies_[g].arcs)
    if (forms[arc.to] && !forms[arc.from] && arc.from != except)
      terms.push_back({arc.variable, -1});
  program_.add_row({std::move(terms), -kUnbounded, -wanted});
}

void CoverProgram::vary(const Variation& variation) {
  if (variation.launch != current_.launch)
    for (size_t v = 0; v < costs_.size(); ++v)
      program_.set_cost(static_cast<int>(v), costs_[v] + variation.launch);
  if (variation.usable != current_.usable)
    for (size_t c = 0; c < compact_.columns.size(); ++c)
      program_.allow(
          static_cast<int>(c),
          variation.usable.empty() || variation.usable[compact_.columns[c].choice.candidate]);
  current_ = variation;
}

Result<CoverSolution> CoverProgram::solve(const SolverLimits& limits, const Variation& variation) {
  constexpr double kLeastSeconds = 1;
  constexpr size_t kMostRounds = 1000;
  vary(variation);
  const ThreadStopwatch watch;
  CoverSolution result;
  for (size_t round = 0; round < kMostRounds; ++round) {
    const IntegerSolution solution = TRY(program_.solve(
        {limits.branches, std::max(kLeastSeconds, limits.seconds - watch.seconds()), limits.gap}));
    result.branches += solution.branches;
    if (std::optional<Cover> cover = decode(solution.used)) {
      result.cover = std::move(*cover);
      result.bound = solution.bound;
      result.proven = solution.proven;
      result.from_linear_program = round == 0 && solution.from_linear_program;
      return result;
    }
  }
  return unsupported("no choice of kernels was found that can run");
}

std::vector<uint32_t> CoverProgram::kernels_of(const Cover& cover) const {
  std::vector<uint32_t> kernels;
  for (const Cover::Kernel& kernel : cover.kernels) kernels.push_back(kernel_of_[kernel.candidate]);
  std::sort(kernels.begin(), kernels.end());
  return kernels;
}

void CoverProgram::exclude(const std::vector<uint32_t>& kernels) {
  Row row{{}, -kUnbounded, static_cast<double>(kernels.size()) - 1};
  for (size_t c = 0; c < compact_.columns.size(); ++c)
    if (std::binary_search(kernels.begin(), kernels.end(), compact_.columns[c].kernel))
      row.terms.push_back({static_cast<int>(c), 1});
  program_.add_row(std::move(row));
}

std::vector<std::vector<int>> CoverProgram::sources(const std::vector<bool>& used) const {
  std::vector<std::vector<int>> result;
  for (uint32_t g = 0; g < supplies_.size(); ++g) {
    const Supply& supply = supplies_[g];
    std::vector<int>& made = result.emplace_back(supply.givers.size(), kMissing);
    if (compact_.groups[g].root < 0) made[compact_.groups[g].at_caller] = kGiven;
    for (size_t form = 0; form < made.size(); ++form)
      for (uint32_t c : supply.givers[form])
        if (used[c]) made[form] = kGiven;
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t a = 0; a < supply.arcs.size(); ++a) {
        const Arc& arc = supply.arcs[a];
        if (!used[static_cast<size_t>(arc.variable)] || made[arc.from] == kMissing ||
            made[arc.to] != kMissing)
          continue;
        made[arc.to] = static_cast<int>(a);
        progress = true;
      }
    }
  }
  return result;
}

bool CoverProgram::add_rows_against_rings(const std::vector<bool>& used,
                                          const std::vector<std::vector<int>>& sources) {
  bool added = false;
  for (uint32_t g = 0; g < supplies_.size(); ++g) {
    Forms missing(sources[g].size());
    for (size_t form = 0; form < missing.size(); ++form)
      missing[form] = sources[g][form] == kMissing;
    const auto add = [&](std::vector<Term> terms, double wanted) {
      add_supply_row(g, missing, std::move(terms), wanted);
      added = true;
    };
    for (const Supply::Want& want : supplies_[g].wants) {
      if (!missing[want.form] || std::none_of(want.columns.begin(), want.columns.end(),
                                              [&](uint32_t c) { return used[c]; }))
        continue;
      std::vector<Term> terms;
      for (uint32_t c : want.columns) terms.push_back({static_cast<int>(c), 1});
      add(std::move(terms), 0);
    }
    if (compact_.groups[g].is_result && missing[compact_.groups[g].at_caller]) add({}, 1);
  }
  return added;
}

// Depth first from the results, of several inputs the deepest first, so that a short branch is
// computed just before it joins a long one and few tensors are live.
std::optional<std::vector<uint32_t>> CoverProgram::run_order(const std::vector<bool>& used) {
  std::vector<uint32_t> chosen, column_of(compact_.nodes.size());
  for (uint32_t c = 0; c < compact_.columns.size(); ++c)
    if (used[c]) {
      chosen.push_back(c);
      for (uint32_t node : compact_.columns[c].nodes) column_of[node] = c;
    }
  const auto deepest_first = [&](std::vector<uint32_t>& nodes) {
    std::stable_sort(nodes.begin(), nodes.end(),
                     [&](uint32_t a, uint32_t b) { return depth_[a] > depth_[b]; });
  };
  std::map<uint32_t, std::vector<uint32_t>> inputs;  // by column: nodes
  std::vector<bool> read(compact_.nodes.size(), false);
  for (uint32_t c : chosen) {
    for (const Use& use : compact_.columns[c].inputs)
      if (const int32_t root = compact_.groups[use.group].root; root >= 0) {
        inputs[c].push_back(static_cast<uint32_t>(root));
        read[static_cast<size_t>(root)] = true;
      }
    deepest_first(inputs[c]);
  }
  std::vector<uint32_t> ends, order;
  for (uint32_t node = 0; node < read.size(); ++node)
    if (!read[node]) ends.push_back(node);
  deepest_first(ends);
  // Those that only wait for one another are in no way to an end.
  for (uint32_t c : chosen) ends.push_back(compact_.columns[c].nodes[0]);

  enum class State : uint8_t { kNew, kOpen, kDone };
  std::map<uint32_t, State> states;
  std::vector<std::pair<uint32_t, size_t>> path;  // columns, and which of their inputs is next
  for (uint32_t end : ends) {
    if (states[column_of[end]] == State::kNew) {
      states[column_of[end]] = State::kOpen;
      path.emplace_back(column_of[end], 0);
    }
    while (!path.empty()) {
      auto& [column, next] = path.back();
      if (next == inputs[column].size()) {
        order.push_back(column);
        states[column] = State::kDone;
        path.pop_back();
        continue;
      }
      const uint32_t input = column_of[inputs[column][next++]];
      if (states[input] == State::kOpen) {
        std::vector<uint32_t> ring;
        while (ring.empty() || ring.back() != input) {
          ring.push_back(path.back().first);
          path.pop_back();
        }
        add_row_against_deadlock(ring);
        return std::nullopt;
      }
      if (states[input] == State::kNew) {
        states[input] = State::kOpen;
        path.emplace_back(input, 0);
      }
    }
  }
  return order;
}

// The same nodes wait for one another in whatever forms.
void CoverProgram::add_row_against_deadlock(const std::vector<uint32_t>& ring) {
  Row row{{}, -kUnbounded, static_cast<double>(ring.size()) - 1};
  for (size_t c = 0; c < compact_.columns.size(); ++c)
    if (std::any_of(ring.begin(), ring.end(), [&](uint32_t waiting) {
          return compact_.columns[waiting].nodes == compact_.columns[c].nodes;
        }))
      row.terms.push_back({static_cast<int>(c), 1});
  program_.add_row(std::move(row));
}

std::optional<Cover> CoverProgram::decode(const std::vector<bool>& used) {
  const std::vector<std::vector<int>> sources = this->sources(used);
  bool added = add_rows_against_rings(used, sources);
  const std::optional<std::vector<uint32_t>> order = run_order(used);
  if (added || !order) return std::nullopt;

  const SearchProblem& problem = *compact_.problem;
  Cover cover;
  std::vector<Forms> exist, charged;  // a parameter is plain in the program, wherever it is
  for (const Group& group : compact_.groups) {
    charged.emplace_back(group.forms.size(), false);
    exist.push_back(charged.back());
    exist.back()[0] = group.root < 0;
  }
  const auto convert = [&](uint32_t g, uint32_t from, uint32_t to, double seconds) {
    const Form &own = compact_.groups[g].forms[from], &other = compact_.groups[g].forms[to];
    cover.conversions.push_back({converted_tensor(own, other), own.encoding, other.encoding,
                                 seconds, cover.kernels.size()});
    exist[g][to] = true;
  };
  const auto charge = [&](uint32_t g, uint32_t from, uint32_t to) {
    if (charged[g][to]) return;
    charged[g][to] = true;
    cover.seconds += compact_.groups[g].conversion(from, to) + problem.launch_penalty;
  };
  const auto make = [&](uint32_t g, uint32_t wanted) {
    const Group& group = compact_.groups[g];
    std::vector<const Arc*> way;
    uint32_t form = wanted;
    for (; !exist[g][form] && sources[g][form] != kGiven; form = way.back()->from)
      way.push_back(&supplies_[g].arcs[static_cast<size_t>(sources[g][form])]);
    if (!exist[g][form]) convert(g, 0, form, 0);  // a run leaves it out
    for (; !way.empty(); way.pop_back()) {
      charge(g, way.back()->from, way.back()->to);
      convert(g, way.back()->from, way.back()->to,
              group.conversion(way.back()->from, way.back()->to));
    }
  };
  for (uint32_t g = 0; g < compact_.groups.size(); ++g)
    for (int a = sources[g][0]; compact_.groups[g].root < 0 && a >= 0;) {
      const Arc& arc = supplies_[g].arcs[static_cast<size_t>(a)];
      charge(g, arc.from, arc.to);  // a run copies it to the host
      a = sources[g][arc.from];
    }
  for (uint32_t c : *order) {
    const Column& column = compact_.columns[c];
    for (const Use& use : column.inputs) make(use.group, use.form);
    cover.kernels.push_back(column.choice);
    cover.seconds += column.cost;
    for (const Use& use : column.outputs) exist[use.group][use.form] = true;
    for (const Use& use : column.outputs)
      if (const Group& group = compact_.groups[use.group]; group.is_result && group.at_caller == 0)
        make(use.group, 0);
  }
  for (uint32_t g = 0; g < compact_.groups.size(); ++g) {
    const Group& group = compact_.groups[g];
    if (!group.is_result || group.root < 0 || group.at_caller == 0) continue;
    const int made = sources[g][group.at_caller];
    if (!exist[g][group.at_caller] && supplies_[g].arcs[static_cast<size_t>(made)].from == 0) {
      make(g, 0);
      charge(g, 0, group.at_caller);  // a run copies it from the host
    } else {
      make(g, group.at_caller);
      if (!exist[g][0]) convert(g, group.at_caller, 0, 0);  // a run leaves it out
    }
  }
  return cover;
}

}  // namespace collage::search
