#include "frontend/script/symbolic_module.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "frontend/script/script.h"
#include "frontend/script/symbol_terms.h"
#include "ir/side_file.h"
#include "ir/text_attrs.h"
#include "tensor_program/program_text.h"
#include "tensor_program/simplify.h"

namespace collage::tensor_program {
namespace {

// Of symbols while only headers are read.
constexpr int64_t kAnySize = 8;

constexpr size_t kMostChecked = 64;  // instances of a module that states its results

Term with_numbers(const Term& term, const Symbols& numbers) {
  return rewrite(term, [&](const Term& t) {
    const auto found = t->op == TermOp::kVar ? numbers.find(t->name) : numbers.end();
    return found == numbers.end() ? t : integer_constant(found->second, DType::kInt32);
  });
}

/// A value of a symbol, and who says so.
struct BoundSymbol {
  int64_t value;
  std::string by;
};

class Binding {
 public:
  explicit Binding(const Symbols& values) {
    for (const auto& [name, value] : values) bound_[name] = {value, "what is given"};
  }

  /// What dimensions that are a symbol alone say.
  Status take(const SymbolicTensor& param, const Shape& shape) {
    if (shape.size() != param.shape.size())
      return bad_model("'{}' has {} dimensions, not {}: {}", param.name, shape.size(),
                       param.shape.size(), param.to_string());
    for (size_t d = 0; d < shape.size(); ++d) {
      if (param.shape[d]->op != TermOp::kVar) continue;
      const std::string& symbol = param.shape[d]->name;
      const BoundSymbol here{shape[d], fmt::format("dimension {} of '{}'", d, param.name)};
      const auto [known, is_new] = bound_.emplace(symbol, here);
      if (!is_new && known->second.value != here.value)
        return bad_model("symbol {} is {} by {}, and {} by {}", symbol, known->second.value,
                         known->second.by, here.value, here.by);
    }
    return {};
  }

  /// What the others have to be then.
  Status check(const SymbolicTensor& param, const Shape& shape) const {
    const Symbols all = values();
    for (size_t d = 0; d < shape.size(); ++d) {
      const std::optional<int64_t> wanted = value_of(param.shape[d], all);
      if (wanted == shape[d]) continue;
      const std::string term = term_to_string(param.shape[d]);
      if (known_integer(param.shape[d]))
        return bad_model("dimension {} of '{}' is {}, not {}", d, param.name, shape[d], term);
      return bad_model("dimension {} of '{}' is {}, not {} with {}", d, param.name, shape[d], term,
                       values_text(all));
    }
    return {};
  }

  Symbols values() const {
    Symbols all;
    for (const auto& [name, bound] : bound_) all[name] = bound.value;
    return all;
  }

 private:
  std::map<std::string, BoundSymbol> bound_;
};

/// Of match_size, in the text's order.
std::vector<std::string> counted_symbols(std::string_view text) {
  constexpr std::string_view kSymbol = "symbol=\"";
  std::vector<std::string> names;
  for (size_t at = 0; (at = text.find(kSymbol, at)) != std::string_view::npos;) {
    at += kSymbol.size();
    std::string name(text.substr(at, text.find('"', at) - at));
    if (!name.empty() && std::count(names.begin(), names.end(), name) == 0)
      names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

Result<Term> parse_symbol_term(std::string_view text) {
  if (text.size() > 1 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0])
    text = text.substr(1, text.size() - 2);
  std::string plain(text);
  for (size_t at = 0; (at = plain.find("//", at)) != std::string::npos;) plain.erase(at, 1);
  TokenReader tokens(plain);
  const Term term = TRY(parse_extent(tokens));
  if (tokens.peek().kind != Token::Kind::kEnd) return tokens.unexpected("a term over symbols");
  return term;
}

std::string values_text(const Symbols& values) {
  constexpr size_t kMostListed = 6;
  std::string text;
  size_t listed = 0;
  for (const auto& [name, value] : values) {
    if (listed++ == kMostListed) return text + ", …";
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

std::vector<std::string> SymbolicTensor::dims() const {
  std::vector<std::string> texts;
  for (const Term& dim : shape) texts.push_back(dim.defined() ? term_to_string(dim) : "?");
  return texts;
}

std::string SymbolicTensor::to_string() const {
  if (shape.empty()) return std::string(dtype_name(dtype));
  return fmt::format("Tensor[({}), {}]", fmt::join(dims(), ", "), dtype_name(dtype));
}

Result<SymbolicModule> SymbolicModule::parse(std::string text, ParseOptions options,
                                             std::string function) {
  SymbolicModule made;
  made.text_ = std::move(text);
  made.options_ = std::move(options);
  made.function_ = std::move(function);
  TRY(made.read_headers());
  Status inferred = made.infer_results();
  if (!inferred.ok() && !made.symbols_.empty()) return inferred;
  return made;
}

Result<SymbolicModule> SymbolicModule::parse(std::string text, std::vector<Tensor> constants) {
  const auto kept = std::make_shared<const std::vector<Tensor>>(std::move(constants));
  ParseOptions options;
  options.side_tensors = kept.get();
  SymbolicModule made = TRY(parse(std::move(text), options));
  made.constants_ = kept;
  return made;
}

Result<SymbolicModule> SymbolicModule::load(const std::filesystem::path& path,
                                            ParseOptions options) {
  options.folder = path.parent_path();
  return parse(TRY(read_file(path)), std::move(options)).with_context(path.string());
}

Status SymbolicModule::read_headers() {
  TextSymbols symbols;
  std::vector<Term> read;  // the extents of types, in order
  symbols.value = [&](std::string_view text, const Symbols& numbers) -> Result<int64_t> {
    read.push_back(with_numbers(TRY(parse_symbol_term(text)), numbers));
    Symbols any;
    for (const std::string& name : unknown_symbols(read.back(), {})) any[name] = kAnySize;
    return std::max(value_of(read.back(), any).value_or(kAnySize), int64_t{1});
  };
  bool found = false;
  symbols.header = [&](const std::string& name, const std::vector<Expr>& params,
                       const std::optional<Type>& result) -> Status {
    if (name != function_) return {};
    const auto rank = [](const Type& type) {
      size_t sum = 0;
      for (const TensorType& leaf : type.leaves()) sum += leaf.shape.size();
      return sum;
    };
    size_t count = result ? rank(*result) : 0;
    for (const Expr& param : params) count += rank(param->type());
    auto next = read.end() - static_cast<std::ptrdiff_t>(count);
    for (const Expr& param : params) {
      if (!param->type().is_tensor())
        return unsupported(
            "parameter %{} of @{} is a {}, not a tensor: a module over symbols takes "
            "tensors",
            as<VarNode>(param)->name, name, param->type().to_string());
      const TensorType& type = param->type().tensor();
      const auto end = next + static_cast<std::ptrdiff_t>(type.shape.size());
      params_.push_back({as<VarNode>(param)->name, type.dtype, {next, end}});
      next = end;
    }
    stated_.assign(next, read.end());
    found = true;
    return internal_error("enough is read");
  };
  ParseOptions options = options_;
  options.symbols = &symbols;
  const Result<Module> headers = parse_module_text(text_, options);
  if (!found) return headers.ok() || params_.empty() ? Status() : headers.status();
  std::vector<std::string> alone;
  for (const SymbolicTensor& param : params_)
    for (const Term& dim : param.shape) {
      if (dim->op == TermOp::kVar) alone.push_back(dim->name);
      for (const std::string& name : unknown_symbols(dim, {}))
        if (std::count(symbols_.begin(), symbols_.end(), name) == 0) symbols_.push_back(name);
    }
  counted_ = counted_symbols(text_);
  for (const std::string& name : counted_) {
    if (std::count(symbols_.begin(), symbols_.end(), name) == 0) symbols_.push_back(name);
    alone.push_back(name);
  }
  for (const std::string& name : symbols_)
    if (std::count(alone.begin(), alone.end(), name) == 0)
      return bad_model(
          "symbol {} is no dimension of @{}'s parameters alone: no shape says what it "
          "is",
          name, function_);
  return {};
}

Result<Module> SymbolicModule::instantiate(const Symbols& values) const {
  return read(text_, values);
}

Result<Module> SymbolicModule::read(const std::string& source, const Symbols& values) const {
  TextSymbols symbols;
  symbols.values = values;
  symbols.value = [&](std::string_view text, const Symbols& numbers) -> Result<int64_t> {
    const Term term = with_numbers(TRY(parse_symbol_term(text)), numbers);
    for (const std::string& name : unknown_symbols(term, values))
      return bad_model("{} is no symbol: no parameter of @{} has it in its shape", name, function_);
    const std::optional<int64_t> value = value_of(term, values);
    if (!value) return bad_model("{} does not fit 32 bits", text);
    return *value;
  };
  ParseOptions options = options_;
  if (!symbols_.empty()) options.symbols = &symbols;
  Module module = TRY(parse_module_text(source, options).with_context(values_text(values)));
  if (module.functions.count(function_) == 0)
    return bad_model("there is no function @{}", function_);
  return module;
}

Status SymbolicModule::save(const std::filesystem::path& path) const {
  std::string text = text_;
  const std::string field = "\"side_file\": ";
  const size_t at = text.rfind(field);
  if (at != std::string::npos && constants_ == nullptr)
    return usage_error("{}: its constants are beside the file that it was read from",
                       path.string());
  if (at != std::string::npos) {
    const std::filesystem::path side = path.string() + ".bin";
    text.replace(at + field.size(), kSideFile.size() + 2,
                 attr_to_string(AttrValue(side.filename().string())));
    TRY(write_side_file(side, *constants_));
  }
  return write_file_atomically(path, text);
}

Status SymbolicModule::infer_results() {
  Status first;
  for (const int64_t step : kExtentSteps) {
    Status status = infer_results(ExtentPoints::of(symbols_, step, kExtentDivisors[0]));
    if (first.ok()) first = status;
    if (!status.ok()) continue;
    const bool all = std::all_of(results_.begin(), results_.end(), [](const SymbolicTensor& one) {
      return std::all_of(one.shape.begin(), one.shape.end(),
                         [](const Term& dim) { return dim.defined(); });
    });
    return all ? Status() : infer_results(ExtentPoints::of(symbols_, step, kExtentDivisors[1]));
  }
  return first;
}

Status SymbolicModule::infer_results(const ExtentPoints& points) {
  using Types = std::vector<TensorType>;
  std::vector<std::optional<Types>> types;
  // Where the header states the results, a few instances say whether they are these.
  const size_t stride = stated_.empty() ? 1 : 1 + points.points.size() / kMostChecked;
  for (size_t i = 0; i < points.points.size(); i += stride) {
    const Result<Module> module = instantiate(points.points[i]);
    if (!module.ok() && types.size() < points.count_of_grid) return module.status();
    types.emplace_back();
    if (module.ok()) types.back() = module->functions.at(function_)->body->type().leaves();
    if (types.back() &&
        !std::equal(types[0]->begin(), types[0]->end(), types.back()->begin(), types.back()->end(),
                    [](const TensorType& a, const TensorType& b) {
                      return a.dtype == b.dtype && a.shape.size() == b.shape.size();
                    }))
      return bad_model("how many results @{} has, or their ranks, depends on symbols", function_);
  }
  results_.clear();
  auto stated = stated_.begin();  // as people order a sum its parts lie in the array
  for (size_t leaf = 0; leaf < types[0]->size(); ++leaf) {
    const TensorType& type = (*types[0])[leaf];
    results_.push_back({"", type.dtype, std::vector<Term>(type.shape.size())});
    for (size_t d = 0; d < type.shape.size(); ++d) {
      if (!stated_.empty()) {
        results_.back().shape[d] = *stated++;
        continue;
      }
      std::vector<std::optional<int64_t>> values;
      for (const std::optional<Types>& one : types) {
        values.emplace_back();
        if (one) values.back() = (*one)[leaf].shape[d];
      }
      if (const std::optional<std::string> term = fitted_extent(points, values))
        results_.back().shape[d] = TRY(parse_symbol_term(*term));
    }
  }
  return {};
}

std::string SymbolicModule::signature() const {
  std::string params, results;
  for (const SymbolicTensor& param : params_)
    params += fmt::format("{}%{}: {}", params.empty() ? "" : ", ", param.name, param.to_string());
  for (const SymbolicTensor& result : results_)
    results += (results.empty() ? "" : ", ") + result.to_string();
  if (results_.size() != 1) results = "(" + results + ")";
  return fmt::format("fn ({}) -> {}", params, results);
}

Result<Symbols> SymbolicModule::bind(std::span<const Shape> shapes) const {
  if (shapes.size() != params_.size())
    return bad_model("{} shapes of {} parameters", shapes.size(), params_.size());
  std::map<std::string, Shape> by_name;
  for (size_t i = 0; i < shapes.size(); ++i) by_name[params_[i].name] = shapes[i];
  return bind(by_name, {});
}

Result<Symbols> SymbolicModule::bind(const std::map<std::string, Shape>& shapes,
                                     Symbols values) const {
  for (const auto& [name, value] : values)
    if (std::count(symbols_.begin(), symbols_.end(), name) == 0)
      return usage_error("a value is given for symbol {}, which {} does not have", name,
                         signature());
  Binding binding(values);
  for (const SymbolicTensor& param : params_)
    if (const auto given = shapes.find(param.name); given != shapes.end())
      TRY(binding.take(param, given->second));
  const Symbols all = binding.values();
  for (const std::string& name : symbols_)
    if (all.count(name) == 0 && std::count(counted_.begin(), counted_.end(), name) == 0)
      return unsupported("symbol {} has no value: give one", name);
  for (const SymbolicTensor& param : params_)
    if (const auto given = shapes.find(param.name); given != shapes.end())
      TRY(binding.check(param, given->second));
  return all;
}

}  // namespace collage::tensor_program
