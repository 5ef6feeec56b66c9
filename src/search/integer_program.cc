#include "search/integer_program.h"

#include <Cbc_C_Interface.h>
#include <Clp_C_Interface.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "base/library_beside.h"
#include "base/thread_stopwatch.h"
#include "runtime/thread_team.h"

namespace collage::search {

namespace {

constexpr double kScale = 1e6;        // the solvers work in microseconds
constexpr double kWhole = 1e-6;       // the distance from a whole number that counts as none
constexpr double kNoSolution = 1e49;  // costs that no solution has: Cbc's own mark is 1e50
constexpr double kLeastSeconds = 1;   // for one tree
// The solvers factorise small matrices by LAPACK, thousands of times, in one thread: a team's
// threads would wait for one another each time, on a busy machine for its whole time slice.

struct Solvers {
  decltype(&Clp_newModel) new_model;
  decltype(&Clp_deleteModel) delete_model;
  decltype(&Clp_setLogLevel) set_log_level;
  decltype(&Clp_loadProblem) load_problem;
  decltype(&Clp_addRows) add_rows;
  decltype(&Clp_chgColumnUpper) change_upper;
  decltype(&Clp_setMaximumSeconds) set_maximum_seconds;
  decltype(&Clp_initialSolveWithOptions) solve;
  decltype(&Clp_dual) dual;
  decltype(&Clp_status) status;
  decltype(&Clp_objectiveValue) objective;
  decltype(&Clp_primalColumnSolution) columns;
  decltype(&Clp_dualColumnSolution) reduced_costs;
  decltype(&ClpSolve_new) new_options;
  decltype(&ClpSolve_delete) delete_options;
  decltype(&ClpSolve_setSolveType) set_solve_type;
  decltype(&ClpSolve_setPresolveType) set_presolve_type;

  decltype(&Cbc_newModel) new_tree;
  decltype(&Cbc_deleteModel) delete_tree;
  decltype(&Cbc_loadProblem) load_tree;
  decltype(&Cbc_setInteger) set_integer;
  decltype(&Cbc_setLogLevel) set_tree_log_level;
  decltype(&Cbc_setParameter) set_parameter;
  decltype(&Cbc_solve) solve_tree;
  decltype(&Cbc_isProvenOptimal) is_optimal;
  decltype(&Cbc_isProvenInfeasible) is_infeasible;
  decltype(&Cbc_getObjValue) tree_objective;
  decltype(&Cbc_getBestPossibleObjValue) tree_bound;
  decltype(&Cbc_getColSolution) tree_columns;
  decltype(&Cbc_getNodeCount) tree_nodes;
};

Result<Solvers> load() {
  void* library = TRY(load_library_beside("libcollage_vendor_cbc.so", kLinearAlgebraRoom));
  Solvers found{};
  TRY(find_function(library, "Clp_newModel", found.new_model));
  TRY(find_function(library, "Clp_deleteModel", found.delete_model));
  TRY(find_function(library, "Clp_setLogLevel", found.set_log_level));
  TRY(find_function(library, "Clp_loadProblem", found.load_problem));
  TRY(find_function(library, "Clp_addRows", found.add_rows));
  TRY(find_function(library, "Clp_chgColumnUpper", found.change_upper));
  TRY(find_function(library, "Clp_setMaximumSeconds", found.set_maximum_seconds));
  TRY(find_function(library, "Clp_initialSolveWithOptions", found.solve));
  TRY(find_function(library, "Clp_dual", found.dual));
  TRY(find_function(library, "Clp_status", found.status));
  TRY(find_function(library, "Clp_objectiveValue", found.objective));
  TRY(find_function(library, "Clp_primalColumnSolution", found.columns));
  TRY(find_function(library, "Clp_dualColumnSolution", found.reduced_costs));
  TRY(find_function(library, "ClpSolve_new", found.new_options));
  TRY(find_function(library, "ClpSolve_delete", found.delete_options));
  TRY(find_function(library, "ClpSolve_setSolveType", found.set_solve_type));
  TRY(find_function(library, "ClpSolve_setPresolveType", found.set_presolve_type));
  TRY(find_function(library, "Cbc_newModel", found.new_tree));
  TRY(find_function(library, "Cbc_deleteModel", found.delete_tree));
  TRY(find_function(library, "Cbc_loadProblem", found.load_tree));
  TRY(find_function(library, "Cbc_setInteger", found.set_integer));
  TRY(find_function(library, "Cbc_setLogLevel", found.set_tree_log_level));
  TRY(find_function(library, "Cbc_setParameter", found.set_parameter));
  TRY(find_function(library, "Cbc_solve", found.solve_tree));
  TRY(find_function(library, "Cbc_isProvenOptimal", found.is_optimal));
  TRY(find_function(library, "Cbc_isProvenInfeasible", found.is_infeasible));
  TRY(find_function(library, "Cbc_getObjValue", found.tree_objective));
  TRY(find_function(library, "Cbc_getBestPossibleObjValue", found.tree_bound));
  TRY(find_function(library, "Cbc_getColSolution", found.tree_columns));
  TRY(find_function(library, "Cbc_getNodeCount", found.tree_nodes));
  return found;
}

Result<const Solvers*> solvers() {
  static const auto* loaded = new Result<Solvers>(load());
  if (!*loaded) return loaded->status();
  return &loaded->value();
}

// The rows as a matrix of columns.
struct Matrix {
  std::vector<CoinBigIndex> starts = {0};
  std::vector<int> indices;
  std::vector<double> values, row_low, row_high;

  // Of those columns alone.
  Matrix(const std::vector<Row>& rows, size_t all, const std::vector<int>& columns) {
    std::vector<int> number(all, -1);
    for (size_t k = 0; k < columns.size(); ++k)
      number[static_cast<size_t>(columns[k])] = static_cast<int>(k);
    std::vector<std::vector<std::pair<int, double>>> by_column(columns.size());
    for (size_t r = 0; r < rows.size(); ++r) {
      row_low.push_back(rows[r].low);
      row_high.push_back(rows[r].high);
      for (const Term& term : rows[r].terms) {
        const int k = number[static_cast<size_t>(term.variable)];
        if (k < 0) continue;
        auto& column = by_column[static_cast<size_t>(k)];
        // A variable that a row names twice has the sum there.
        if (!column.empty() && column.back().first == static_cast<int>(r))
          column.back().second += term.value;
        else
          column.emplace_back(static_cast<int>(r), term.value);
      }
    }
    for (const auto& column : by_column) {
      for (const auto& [row, value] : column) {
        if (value == 0) continue;
        indices.push_back(row);
        values.push_back(value);
      }
      starts.push_back(static_cast<CoinBigIndex>(indices.size()));
    }
  }
};

// A solution by Cbc of the program of some of its columns.
class Tree {
 public:
  Tree(const Solvers& solvers, const std::vector<double>& costs, const std::vector<Row>& rows,
       const std::vector<int>& columns, const SolverLimits& limits)
      : solvers_(solvers), tree_(solvers.new_tree()) {
    const Matrix matrix(rows, costs.size(), columns);
    const std::vector<double> low(columns.size(), 0), high(columns.size(), 1);
    std::vector<double> some_costs;
    for (int c : columns) some_costs.push_back(costs[static_cast<size_t>(c)]);
    solvers.load_tree(tree_, static_cast<int>(columns.size()), static_cast<int>(rows.size()),
                      matrix.starts.data(), matrix.indices.data(), matrix.values.data(), low.data(),
                      high.data(), some_costs.data(), matrix.row_low.data(),
                      matrix.row_high.data());
    for (size_t c = 0; c < columns.size(); ++c) solvers.set_integer(tree_, static_cast<int>(c));
    solvers.set_tree_log_level(tree_, 0);
    set("threads", "0");
    set("ratioGap", std::to_string(limits.gap));
    set("allowableGap", "0");
    set("heuristicsOnOff", "off");
    set("timeMode", "cpu");
    set("maxNodes", std::to_string(limits.branches));
    set("seconds", std::to_string(limits.seconds));
    const TeamScope one_thread(1);
    solvers.solve_tree(tree_);
  }
  Tree(const Tree&) = delete;
  ~Tree() { solvers_.delete_tree(tree_); }

  bool optimal() const { return solvers_.is_optimal(tree_) != 0; }
  bool found() const {
    return optimal() || (solvers_.is_infeasible(tree_) == 0 && objective() < kNoSolution);
  }
  double objective() const { return solvers_.tree_objective(tree_); }
  double bound() const { return solvers_.tree_bound(tree_); }
  double value(size_t column) const { return solvers_.tree_columns(tree_)[column]; }
  size_t branches() const { return static_cast<size_t>(std::max(0, solvers_.tree_nodes(tree_))); }

 private:
  void set(const char* name, const std::string& value) {
    solvers_.set_parameter(tree_, name, value.c_str());
  }
  const Solvers& solvers_;
  Cbc_Model* tree_;
};

Status no_solution() { return unsupported("no choice of kernels covers the whole graph"); }

}  // namespace

// The linear program, kept between solutions: after a change it goes on from the last one.
struct IntegerProgram::Relaxed {
  const Solvers& solvers;
  Clp_Simplex* model;
  size_t rows = 0;  // of the program's rows, how many it has
  bool solved = false;

  explicit Relaxed(const Solvers& solvers) : solvers(solvers), model(solvers.new_model()) {
    solvers.set_log_level(model, 0);
  }
  Relaxed(const Relaxed&) = delete;
  ~Relaxed() { solvers.delete_model(model); }

  void load(const std::vector<double>& costs, const std::vector<double>& upper,
            const std::vector<Row>& all_rows) {
    std::vector<int> columns(costs.size());
    std::iota(columns.begin(), columns.end(), 0);
    const Matrix matrix(all_rows, costs.size(), columns);
    const std::vector<double> low(costs.size(), 0);
    solvers.load_problem(model, static_cast<int>(costs.size()), static_cast<int>(all_rows.size()),
                         matrix.starts.data(), matrix.indices.data(), matrix.values.data(),
                         low.data(), upper.data(), costs.data(), matrix.row_low.data(),
                         matrix.row_high.data());
    rows = all_rows.size();
  }

  void add(const std::vector<Row>& all_rows) {
    std::vector<CoinBigIndex> starts = {0};
    std::vector<int> indices;
    std::vector<double> values, low, high;
    for (; rows < all_rows.size(); ++rows) {
      // By variable: the solver wants each once.
      std::vector<Term> terms = all_rows[rows].terms;
      std::stable_sort(terms.begin(), terms.end(),
                       [](const Term& a, const Term& b) { return a.variable < b.variable; });
      for (size_t t = 0; t < terms.size(); ++t) {
        if (t > 0 && terms[t].variable == terms[t - 1].variable) {
          values.back() += terms[t].value;
          continue;
        }
        indices.push_back(terms[t].variable);
        values.push_back(terms[t].value);
      }
      starts.push_back(static_cast<CoinBigIndex>(indices.size()));
      low.push_back(all_rows[rows].low);
      high.push_back(all_rows[rows].high);
    }
    solvers.add_rows(model, static_cast<int>(low.size()), low.data(), high.data(), starts.data(),
                     indices.data(), values.data());
  }

  // From the last solution, unless costs are other ones: going on from it takes longer then.
  void solve(double max_seconds) {
    solvers.set_maximum_seconds(model, max_seconds);
    const TeamScope one_thread(1);
    if (solved) {
      solvers.dual(model, 0);
      return;
    }
    constexpr int kUseDual = 0, kPresolveOn = 0, kNothingMore = -1;  // of ClpSolve.hpp
    Clp_Solve* how = solvers.new_options();
    solvers.set_solve_type(how, kUseDual, kNothingMore);
    solvers.set_presolve_type(how, kPresolveOn, kNothingMore);
    solvers.solve(model, how);
    solvers.delete_options(how);
    solved = true;
  }
};

IntegerProgram::IntegerProgram() = default;
IntegerProgram::IntegerProgram(IntegerProgram&&) noexcept = default;
IntegerProgram::~IntegerProgram() = default;

int IntegerProgram::add_variable(double cost) {
  costs_.push_back(cost * kScale);
  upper_.push_back(1);
  return static_cast<int>(costs_.size()) - 1;
}

void IntegerProgram::add_row(Row row) { rows_.push_back(std::move(row)); }

void IntegerProgram::set_cost(int variable, double cost) {
  costs_[static_cast<size_t>(variable)] = cost * kScale;
  relaxed_.reset();
}

void IntegerProgram::allow(int variable, bool allowed) {
  upper_[static_cast<size_t>(variable)] = allowed ? 1 : 0;
  upper_changed_ = true;
}

Result<IntegerSolution> IntegerProgram::solve(const SolverLimits& limits) {
  const Solvers& loaded = *TRY(solvers());
  if (relaxed_ == nullptr) {
    relaxed_ = std::make_unique<Relaxed>(loaded);
    relaxed_->load(costs_, upper_, rows_);
  }
  if (upper_changed_) loaded.change_upper(relaxed_->model, upper_.data());
  upper_changed_ = false;
  if (relaxed_->rows < rows_.size()) relaxed_->add(rows_);
  relaxed_->solve(limits.seconds);
  constexpr int kOptimal = 0, kInfeasible = 1;
  const int status = loaded.status(relaxed_->model);
  if (status == kInfeasible) return no_solution();
  if (status == kOptimal) {
    const double* x = loaded.columns(relaxed_->model);
    if (std::all_of(x, x + costs_.size(),
                    [](double one) { return one < kWhole || one > 1 - kWhole; })) {
      IntegerSolution solution;
      for (size_t c = 0; c < costs_.size(); ++c) solution.used.push_back(x[c] > 0.5);
      solution.bound = loaded.objective(relaxed_->model) / kScale;
      solution.proven = solution.from_linear_program = true;
      return solution;
    }
  }
  return branch(limits, status == kOptimal);
}

// The linear program's reduced costs say what a solution costs at least that uses a variable. Those
// that cost more than the solution at hand are in no better one, so that the trees are small.
Result<IntegerSolution> IntegerProgram::branch(const SolverLimits& limits, bool has_bound) const {
  // Of the bound, and where that is next to nothing; each slack is larger than the one before.
  constexpr double kFirstSlack = 1e-6, kLeastSlack = 1e-9, kWiden = 10;
  const Solvers& loaded = relaxed_->solvers;
  const double bound = has_bound ? loaded.objective(relaxed_->model) : 0;
  const double* reduced = loaded.reduced_costs(relaxed_->model);
  const ThreadStopwatch watch;
  IntegerSolution best;
  double least = kNoSolution;
  size_t branches = 0;
  for (double slack = has_bound ? std::max(kFirstSlack * bound, kLeastSlack) : kNoSolution;;) {
    std::vector<int> columns;
    bool all = true;
    for (size_t c = 0; c < costs_.size(); ++c) {
      if (upper_[c] == 0) continue;
      if (slack >= kNoSolution || reduced[c] <= slack)
        columns.push_back(static_cast<int>(c));
      else
        all = false;
    }
    const Tree tree(
        loaded, costs_, rows_, columns,
        {limits.branches, std::max(kLeastSeconds, limits.seconds - watch.seconds()), limits.gap});
    branches += tree.branches();
    if (tree.found() && tree.objective() < least) {
      least = tree.objective();
      best.used.assign(costs_.size(), false);
      for (size_t k = 0; k < columns.size(); ++k)
        best.used[static_cast<size_t>(columns[k])] = tree.value(k) > 0.5;
    }
    const bool enough = all || std::max(slack, limits.gap * bound) >= least - bound;
    if (least < kNoSolution && (enough || !tree.optimal())) {
      best.proven = enough && tree.optimal();
      best.bound = (best.proven ? least : std::min(tree.bound(), bound + slack)) / kScale;
      best.branches = branches;
      return best;
    }
    if (all) return no_solution();
    slack = least < kNoSolution ? std::max(least - bound, 2 * slack) : kWiden * slack;
  }
}

}  // namespace collage::search
