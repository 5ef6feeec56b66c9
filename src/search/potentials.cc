#include "search/potentials.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/log.h"
#include "search/linear_program.h"

namespace collage::search {

namespace {

constexpr double kScale = 1e6;  // the solver works in microseconds
// The cheapest way into a form from any other: whatever gives a missing form, it costs that much.
double cheapest_conversion(const Group& group, uint32_t to) {
  double best = kInfinity;
  for (uint32_t from = 0; from < group.forms.size(); ++from)
    if (from != to) best = std::min(best, group.convert(from, to));
  return best;
}

size_t reader_index(const Group& group, uint32_t node) {
  return static_cast<size_t>(std::lower_bound(group.readers.begin(), group.readers.end(), node) -
                             group.readers.begin());
}

class Solver {
 public:
  explicit Solver(const CompactProblem& compact) : compact_(compact) {}

  Potentials run(double max_seconds) {
    number_rows();
    build();
    return read(solved(max_seconds));
  }

 private:
  // Rows: nodes first, then (group, form, reader) where some column reads that there, then the
  // plain form of results.
  void number_rows() {
    size_t rows = compact_.nodes.size();
    row_.resize(compact_.groups.size());
    result_row_.assign(compact_.groups.size(), -1);
    for (size_t g = 0; g < compact_.groups.size(); ++g)
      row_[g].assign(compact_.groups[g].forms.size() * compact_.groups[g].readers.size(), -1);
    for (const Column& column : compact_.columns)
      for (size_t k = 0; k < column.inputs.size(); ++k) {
        int& row = row_of(column.inputs[k], column.readers[k]);
        if (row < 0) row = static_cast<int>(rows++);
      }
    for (size_t g = 0; g < compact_.groups.size(); ++g)
      if (compact_.groups[g].is_result && compact_.groups[g].root >= 0)
        result_row_[g] = static_cast<int>(rows++);
    rows_ = rows;
  }

  int& row_of(const Use& use, uint32_t reader) {
    const Group& group = compact_.groups[use.group];
    return row_[use.group][use.form * group.readers.size() + reader_index(group, reader)];
  }

  void entry(int row, double value) {
    program_.rows.push_back(row);
    program_.values.push_back(value);
  }
  void end_column(double cost) {
    program_.starts.push_back(static_cast<int>(program_.rows.size()));
    program_.costs.push_back(cost * kScale);
  }
  // The rows that an existing form relaxes.
  void supply(const Use& use) {
    const Group& group = compact_.groups[use.group];
    for (size_t r = 0; r < group.readers.size(); ++r)
      if (int row = row_[use.group][use.form * group.readers.size() + r]; row >= 0) entry(row, -1);
    if (use.form == 0 && result_row_[use.group] >= 0) entry(result_row_[use.group], -1);
  }

  void build() {
    for (const Column& column : compact_.columns) {
      for (uint32_t node : column.nodes) entry(static_cast<int>(node), 1);
      for (size_t k = 0; k < column.inputs.size(); ++k)
        entry(row_of(column.inputs[k], column.readers[k]), 1);
      for (const Use& use : column.outputs) supply(use);
      end_column(column.cost);
    }
    for (uint32_t g = 0; g < compact_.groups.size(); ++g)
      for (uint32_t f = 0; f < compact_.groups[g].forms.size(); ++f) {
        double cost = cheapest_conversion(compact_.groups[g], f);
        if (cost == kInfinity) continue;
        size_t before = program_.rows.size();
        supply({g, f});
        if (program_.rows.size() > before) end_column(cost);
      }
    std::vector<double>&lower = program_.lower, &upper = program_.upper;
    lower.assign(rows_, -std::numeric_limits<double>::max());
    upper.assign(rows_, 0);
    for (size_t n = 0; n < compact_.nodes.size(); ++n) lower[n] = upper[n] = 1;
    for (size_t g = 0; g < compact_.groups.size(); ++g) {
      if (result_row_[g] >= 0) upper[static_cast<size_t>(result_row_[g])] = -1;
      const Group& group = compact_.groups[g];
      if (group.root >= 0) continue;  // a parameter exists in its plain form
      for (size_t r = 0; r < group.readers.size(); ++r)
        if (int row = row_[g][r]; row >= 0) upper[static_cast<size_t>(row)] = 1;
    }
  }

  // Without a solver all is free, which is a bound too.
  LinearSolution solved(double max_seconds) const {
    Result<LinearSolution> solution = search::solve(program_, max_seconds);
    if (solution) return std::move(solution).value();
    log::info("covers are searched without prices: {}", solution.status().to_string());
    return {std::vector<double>(program_.costs.size()), std::vector<double>(rows_)};
  }

  Potentials read(const LinearSolution& solution) {
    const std::vector<double>& prices = solution.prices;
    Potentials result;
    const auto used = solution.columns.begin();
    result.solution.assign(used, used + static_cast<ptrdiff_t>(compact_.columns.size()));
    result.node.resize(compact_.nodes.size());
    for (size_t n = 0; n < result.node.size(); ++n) result.node[n] = prices[n] / kScale;
    std::vector<double> plain_price(compact_.groups.size(), 0);
    for (uint32_t g = 0; g < compact_.groups.size(); ++g) {
      const Group& group = compact_.groups[g];
      size_t readers = group.readers.size();
      std::vector<double> price(group.forms.size() * readers, 0);
      for (size_t k = 0; k < price.size(); ++k)
        if (row_[g][k] >= 0)
          price[k] = std::max(0.0, -prices[static_cast<size_t>(row_[g][k])] / kScale);
      if (result_row_[g] >= 0)
        plain_price[g] = std::max(0.0, -prices[static_cast<size_t>(result_row_[g])] / kScale);
      // A conversion must not pay: scale down the prices of what it would supply.
      for (uint32_t f = 0; f < group.forms.size(); ++f) {
        double sum = f == 0 ? plain_price[g] : 0;
        for (size_t r = 0; r < readers; ++r) sum += price[f * readers + r];
        double cost = cheapest_conversion(group, f);
        if (sum <= cost || sum == 0) continue;
        for (size_t r = 0; r < readers; ++r) price[f * readers + r] *= cost / sum;
        if (f == 0) plain_price[g] *= cost / sum;
      }
      result.reader.push_back(std::move(price));
    }
    // Nor may a column: lower the price of one of its nodes. That raises the others' reduced costs.
    auto reduced = [&](const Column& column) {
      double sum = column.cost;
      for (uint32_t node : column.nodes) sum -= result.node[node];
      for (size_t k = 0; k < column.inputs.size(); ++k) {
        const Group& group = compact_.groups[column.inputs[k].group];
        sum += result.reader_price(column.inputs[k].group, column.inputs[k].form,
                                   reader_index(group, column.readers[k]), group.readers.size());
      }
      for (const Use& use : column.outputs) {
        size_t readers = compact_.groups[use.group].readers.size();
        for (size_t r = 0; r < readers; ++r)
          sum -= result.reader_price(use.group, use.form, r, readers);
        if (use.form == 0) sum -= plain_price[use.group];
      }
      return sum;
    };
    for (const Column& column : compact_.columns)
      if (double sum = reduced(column); sum < 0) result.node[column.nodes[0]] += sum;
    for (const Column& column : compact_.columns)
      result.reduced.push_back(std::max(0.0, reduced(column)));
    for (uint32_t g = 0; g < compact_.groups.size(); ++g)
      if (compact_.groups[g].root >= 0)
        result.node[static_cast<size_t>(compact_.groups[g].root)] += plain_price[g];
    for (double price : result.node) result.bound += price;
    for (uint32_t g = 0; g < compact_.groups.size(); ++g)
      if (compact_.groups[g].root < 0)
        for (size_t r = 0; r < compact_.groups[g].readers.size(); ++r)
          result.bound -= result.reader[g][r];
    return result;
  }

  const CompactProblem& compact_;
  LinearProgram program_;
  size_t rows_ = 0;
  std::vector<std::vector<int>> row_;  // per group: forms × readers; -1 where nothing reads
  std::vector<int> result_row_;
};

}  // namespace

Potentials solve_potentials(const CompactProblem& compact, double max_seconds) {
  return Solver(compact).run(max_seconds);
}

}  // namespace collage::search
