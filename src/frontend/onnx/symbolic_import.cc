#include "frontend/onnx/symbolic_import.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frontend/script/generalise.h"
#include "frontend/script/symbol_terms.h"

namespace collage::frontend {

namespace {

using tensor_program::SymbolicTensor;
using tensor_program::Symbols;
using tensor_program::Term;

std::string identifier(std::string_view name) {
  std::string made;
  for (const char c : name)
    made += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
  // Not the functions of terms.
  if (made.empty() || std::isdigit(static_cast<unsigned char>(made[0])) != 0 || made == "min" ||
      made == "max")
    made.insert(made.begin(), 'n');
  return made;
}

// A dimension's term: a sum of others is one of their symbols.
Result<Term> term_of(const ModelInput& input, size_t d, const std::set<std::string>& alone,
                     const std::map<std::string, std::string>& dims) {
  const std::string& dim = input.dims[d];
  if (const auto given = dims.find(dim); given != dims.end()) {
    const Result<Term> term = tensor_program::parse_symbol_term(given->second);
    return term.ok()
               ? term
               : usage_error("dimension '{}' is no term over others: '{}'", dim, given->second);
  }
  if (!is_open_dimension(dim)) return tensor_program::parse_symbol_term(dim);
  if (!is_named_dimension(dim))
    return tensor_program::parse_symbol_term(identifier(fmt::format("{}_{}", input.name, d)));
  const Result<Term> sum = tensor_program::parse_symbol_term(dim);
  if (sum.ok()) {
    const auto names = tensor_program::unknown_symbols(*sum, {});
    if (!names.empty() && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
          return alone.count(name) != 0;
        }))
      return *sum;
  }
  return tensor_program::parse_symbol_term(identifier(dim));
}

using ImportFor = std::function<Result<Module>(const Symbols& sizes, RunSizes& counted)>;

// The symbols of sizes that a run counts: those that are known of no other, or of which importing
// knows something else for other sizes.
std::vector<std::string> counted_sizes(const std::vector<std::string>& symbols,
                                       const ImportFor& import) {
  std::vector<std::vector<std::optional<int64_t>>> known;  // of two imports
  for (const int64_t base : {480, 1, 32, 2, 5}) {
    Symbols sizes;
    for (const std::string& symbol : symbols)
      sizes[symbol] = base + static_cast<int64_t>(sizes.size());
    RunSizes counted([&](size_t number) { return base + static_cast<int64_t>(number % 4); });
    if (!import(sizes, counted).ok()) continue;  // generalise says why
    known.push_back(counted.known());
    if (known.size() == 2 || known[0].empty()) break;
  }
  std::vector<std::string> names;
  if (known.size() == 2 && known[0].size() == known[1].size())
    for (size_t i = 0; i < known[0].size(); ++i)
      if (!known[0][i] || known[0][i] != known[1][i]) names.push_back(RunSizes::name(i));
  return names;
}

}  // namespace

Result<tensor_program::SymbolicModule> import_symbolic(
    StagedModel& model, const std::map<std::string, std::string>& dims) {
  std::set<std::string> alone, known;
  for (const ModelInput& input : model.inputs()) {
    if (!input.has_shape) return unsupported("input '{}' has no rank", input.name);
    known.insert(input.dims.begin(), input.dims.end());
    for (const std::string& dim : input.dims)
      if (is_named_dimension(dim) && identifier(dim) == dim && dims.count(dim) == 0)
        alone.insert(dim);
  }
  for (const auto& [name, term] : dims)
    if (known.count(name) == 0 || !is_named_dimension(name))
      return usage_error("no input has a dimension '{}'", name);
  std::vector<SymbolicTensor> params;
  // Those of sums first: the parts of a sum lie in its order, and terms have the order of these.
  std::vector<std::string> sums, symbols;
  for (const ModelInput& input : model.inputs()) {
    params.push_back({input.name, input.dtype, {}});
    for (size_t d = 0; d < input.dims.size(); ++d) {
      params.back().shape.push_back(TRY(term_of(input, d, alone, dims)));
      const Term& dim = params.back().shape[d];
      for (const std::string& name : tensor_program::unknown_symbols(dim, {}))
        (dim->op == tensor_program::TermOp::kVar ? symbols : sums).push_back(name);
    }
  }
  for (const ModelInput& output : model.outputs())
    for (const std::string& dim : output.dims)
      if (const Result<Term> sum = tensor_program::parse_symbol_term(dim); sum.ok())
        for (const std::string& name : tensor_program::unknown_symbols(*sum, {}))
          if (std::count(symbols.begin(), symbols.end(), name) != 0) sums.push_back(name);
  symbols.insert(symbols.begin(), sums.begin(), sums.end());
  std::set<std::string> seen;
  std::erase_if(symbols, [&](const std::string& name) { return !seen.insert(name).second; });
  const auto import = [&](const Symbols& sizes, RunSizes& counted) -> Result<Module> {
    std::vector<TensorType> types;
    for (const SymbolicTensor& param : params) {
      types.push_back({{}, param.dtype});
      for (const Term& dim : param.shape) {
        const auto value = tensor_program::value_of(dim, sizes);
        if (!value) return unsupported("a dimension of '{}' is too large", param.name);
        types.back().shape.push_back(*value);
      }
    }
    return model.import_whole(types, counted);
  };
  const std::vector<std::string> counts = counted_sizes(symbols, import);
  symbols.insert(symbols.end(), counts.begin(), counts.end());
  return tensor_program::generalise(symbols, [&](const Symbols& sizes) {
    RunSizes counted([&](size_t number) -> std::optional<int64_t> {
      const auto size = sizes.find(RunSizes::name(number));
      return size == sizes.end() ? std::nullopt : std::optional(size->second);
    });
    return import(sizes, counted);
  });
}

}  // namespace collage::frontend
