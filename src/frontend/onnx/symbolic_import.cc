#include "frontend/onnx/symbolic_import.h"

#include <algorithm>
#include <cctype>
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
  return tensor_program::generalise(symbols, [&](const Symbols& sizes) -> Result<Module> {
    std::vector<TensorType> types;
    for (const SymbolicTensor& param : params) {
      types.push_back({{}, param.dtype});
      for (const Term& dim : param.shape) {
        const auto value = tensor_program::value_of(dim, sizes);
        if (!value) return unsupported("a dimension of '{}' is too large", param.name);
        types.back().shape.push_back(*value);
      }
    }
    return model.import_whole(types);
  });
}

}  // namespace collage::frontend
