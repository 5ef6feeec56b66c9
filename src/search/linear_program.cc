#include "search/linear_program.h"

#include <Clp_C_Interface.h>

#include <limits>

#include "base/library_beside.h"

namespace collage::search {

namespace {

struct Clp {
  decltype(&Clp_newModel) new_model;
  decltype(&Clp_deleteModel) delete_model;
  decltype(&Clp_setLogLevel) set_log_level;
  decltype(&Clp_loadProblem) load_problem;
  decltype(&Clp_setMaximumSeconds) set_maximum_seconds;
  decltype(&Clp_initialSolveWithOptions) solve;
  decltype(&Clp_primalColumnSolution) columns;
  decltype(&Clp_dualRowSolution) prices;
  decltype(&ClpSolve_new) new_options;
  decltype(&ClpSolve_delete) delete_options;
  decltype(&ClpSolve_setSolveType) set_solve_type;
  decltype(&ClpSolve_setPresolveType) set_presolve_type;
};

Result<Clp> load() {
  void* library = TRY(load_library_beside("libcollage_vendor_clp.so", kLinearAlgebraRoom));
  Clp found{};
  TRY(find_function(library, "Clp_newModel", found.new_model));
  TRY(find_function(library, "Clp_deleteModel", found.delete_model));
  TRY(find_function(library, "Clp_setLogLevel", found.set_log_level));
  TRY(find_function(library, "Clp_loadProblem", found.load_problem));
  TRY(find_function(library, "Clp_setMaximumSeconds", found.set_maximum_seconds));
  TRY(find_function(library, "Clp_initialSolveWithOptions", found.solve));
  TRY(find_function(library, "Clp_primalColumnSolution", found.columns));
  TRY(find_function(library, "Clp_dualRowSolution", found.prices));
  TRY(find_function(library, "ClpSolve_new", found.new_options));
  TRY(find_function(library, "ClpSolve_delete", found.delete_options));
  TRY(find_function(library, "ClpSolve_setSolveType", found.set_solve_type));
  TRY(find_function(library, "ClpSolve_setPresolveType", found.set_presolve_type));
  return found;
}

}  // namespace

Result<LinearSolution> solve(const LinearProgram& program, double max_seconds) {
  static const auto* loaded = new Result<Clp>(load());
  if (!*loaded) return loaded->status();
  const Clp& clp = loaded->value();
  const size_t columns = program.costs.size();
  const std::vector<double> low(columns, 0), high(columns, std::numeric_limits<double>::max());
  Clp_Simplex* model = clp.new_model();
  clp.set_log_level(model, 0);
  clp.load_problem(model, static_cast<int>(columns), static_cast<int>(program.lower.size()),
                   program.starts.data(), program.rows.data(), program.values.data(), low.data(),
                   high.data(), program.costs.data(), program.lower.data(), program.upper.data());
  clp.set_maximum_seconds(model, max_seconds);
  constexpr int kUseDual = 0, kPresolveOn = 0, kNothingMore = -1;  // of ClpSolve.hpp
  Clp_Solve* how = clp.new_options();
  clp.set_solve_type(how, kUseDual, kNothingMore);
  clp.set_presolve_type(how, kPresolveOn, kNothingMore);
  clp.solve(model, how);
  const double *x = clp.columns(model), *prices = clp.prices(model);
  LinearSolution solution{{x, x + columns}, {prices, prices + program.lower.size()}};
  clp.delete_options(how);
  clp.delete_model(model);
  return solution;
}

}  // namespace collage::search
