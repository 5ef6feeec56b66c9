#include "frontend/script/parts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <utility>

#include "frontend/script/generalise.h"
#include "frontend/script/symbol_terms.h"
#include "ir/text_attrs.h"
#include "ir/text_printer.h"
#include "tensor_program/program_text.h"

namespace collage::tensor_program {
namespace {

/// A place of a text where a value is read: "%3.1" of the call "%3", or the parameter "x".
struct Reference {
  size_t begin = 0, end = 0;
  std::string call;  // empty: a parameter
  std::string value;
};

/// A call with its name, of @main's body as it is printed, or its result.
struct Statement {
  std::string text, name;             // "  %3 = topk(%2, k=8);\n", "%3"
  std::vector<Reference> references;  // to values that are defined outside
  std::set<std::string> symbols;      // that it has
  std::set<std::string> terms;        // of these
  size_t part = 0;
  bool ends_part = false;
};

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

size_t end_of_string(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
  return at + 1;
}

size_t end_of_word(std::string_view text, size_t at) {
  while (at < text.size() && is_word_character(text[at])) ++at;
  return at;
}

/// Calls variable(begin, end) and word(begin, end) for each of a text; strings are passed over.
template <typename OnVariable, typename OnWord>
void scan(std::string_view text, OnVariable&& on_variable, OnWord&& on_word) {
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == '"') {
      end = end_of_string(text, at);
    } else if (text[at] == '%') {
      const bool quoted = end < text.size() && text[end] == '"';
      end = quoted ? end_of_string(text, end) : end_of_word(text, end);
      on_variable(at, end);
    } else if (text[at] == '@' || text[at] == '.') {
      end = end_of_word(text, end);
    } else if (is_word_character(text[at])) {
      end = end_of_word(text, at);
      on_word(at, end);
    }
    at = end;
  }
}

/// The statements of a body, each with the lines of functions inside it.
std::vector<Statement> statements_of(std::string_view body) {
  std::vector<Statement> made;
  int depth = 0;
  size_t start = 0;
  for (size_t at = 0; at < body.size(); ++at) {
    if (body[at] == '"') at = end_of_string(body, at) - 1;
    if (body[at] == '{') ++depth;
    if (body[at] == '}') --depth;
    if (body[at] != '\n' || depth != 0 || (at > 0 && body[at - 1] != ';')) continue;
    made.emplace_back().text = body.substr(start, at + 1 - start);
    start = at + 1;
  }
  std::string result(body.substr(start));
  // A call in place of the result gets a name.
  const size_t from = result.find_first_not_of(' ');
  if (from != std::string::npos && result[from] != '(' && result[from] != '%') {
    const size_t end = result.find_last_not_of('\n') + 1;
    made.emplace_back().text = fmt::format("  %result = {};\n", result.substr(from, end - from));
    result = "  %result\n";
  }
  made.emplace_back().text = std::move(result);
  for (Statement& one : made) {
    const size_t first = one.text.find_first_not_of(' ');
    const size_t equals = one.text.find(" = ");
    if (first != std::string::npos && one.text[first] == '%' && equals != std::string::npos &&
        one.text.find_first_of("( ", first) == equals)
      one.name = one.text.substr(first, equals - first);
  }
  return made;
}

/// The term around a symbol: an argument, an element of a list, or what braces hold.
std::string_view term_around(std::string_view text, size_t begin, size_t end) {
  // Whether a parenthesis is one of a term's: a function's or none's.
  const auto is_of_term = [&](size_t at) {
    const std::string_view before = text.substr(0, at);
    return before.ends_with("min") || before.ends_with("max") ||
           !(at > 0 && is_word_character(text[at - 1]));
  };
  int depth = 0;
  for (; begin > 0; --begin) {
    const char c = text[begin - 1];
    if (c == ')') ++depth;
    if (c == '(' && depth-- == 0 && !is_of_term(begin - 1)) break;
    if (c == '[' || c == '{' || c == '=' || (c == ',' && depth == 0)) break;
  }
  depth = 0;
  for (size_t at = begin; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '(') ++depth;
    const bool is_end =
        c == ']' || c == '}' || (c == ')' && depth-- == 0) || (c == ',' && depth == 0);
    if (is_end) return text.substr(begin, at - begin);
  }
  return text.substr(begin, end - begin);
}

bool begins_part(std::string_view text) {
  for (const std::string_view op :
       {" = nonzero(", " = vision.non_max_suppression(", " = topk(", " = argmax(", " = argmin("})
    if (text.find(op) != std::string_view::npos) return true;
  return false;
}

/// Cuts @main's body.
class Cut {
 public:
  Cut(std::vector<Statement> statements, const SymbolicModule& module)
      : statements_(std::move(statements)), symbols_(module.symbols()) {
    for (const SymbolicTensor& param : module.params()) {
      params_.insert(param.name);
      while (param.name.starts_with(prefix_)) prefix_ += "_";
    }
    for (Statement& one : statements_) read(one);
    place();
  }

  std::vector<ModulePart> parts() const {
    std::vector<ModulePart> made;
    for (size_t i = 0; i <= statements_.back().part; ++i) made.push_back(part(i));
    return made;
  }

  /// The names that the last statement lists.
  Result<std::vector<std::string>> results() const {
    const Statement& last = statements_.back();
    std::vector<std::string> names;
    std::string rest = last.text;  // "(%3, %4.1)" or "%3", nothing else
    for (auto one = last.references.rbegin(); one != last.references.rend(); ++one) {
      names.insert(names.begin(), one->value);
      rest.erase(one->begin, one->end - one->begin);
    }
    if (rest.find_first_not_of(" (),\n") != std::string::npos || names.empty())
      return unsupported("a result of @main is no call and no parameter: '{}'", last.text);
    return names;
  }

 private:
  // Finds what a statement reads. Tuples' fields are read by whoever reads the tuple.
  void read(Statement& one) {
    for (bool again = true; again;) {
      again = false;
      one.references.clear();
      one.symbols.clear();
      one.terms.clear();
      scan(
          one.text,
          [&](size_t begin, size_t end) {
            if (again) return;
            const std::string variable = one.text.substr(begin, end - begin);
            const bool quoted = variable.size() > 1 && variable[1] == '"';
            const std::string param =
                quoted ? variable.substr(2, variable.size() - 3) : variable.substr(1);
            if (const auto tuple = tuples_.find(variable); tuple != tuples_.end()) {
              one.text.replace(begin, end - begin, tuple->second);
              again = true;
            } else if (calls_.count(variable) != 0) {
              if (one.text[end] == '.') end = end_of_word(one.text, end + 1);
              one.references.push_back({begin, end, variable, one.text.substr(begin, end - begin)});
            } else if (params_.count(param) != 0) {
              one.references.push_back({begin, end, "", param});
            }
          },
          [&](size_t begin, size_t end) {
            std::string word = one.text.substr(begin, end - begin);
            // An attribute may have a symbol's name.
            if (one.text[end] == '=') return;
            if (std::find(symbols_.begin(), symbols_.end(), word) == symbols_.end()) return;
            one.symbols.insert(std::move(word));
            one.terms.emplace(term_around(one.text, begin, end));
          });
    }
    read_count(one);
    // What follows depends on the bound, no more on the count.
    one.ends_part = one.text.find(" = strided_slice(") != std::string::npos &&
                    std::any_of(one.terms.begin(), one.terms.end(), [](const std::string& term) {
                      return term.find("min(") != std::string::npos;
                    });
    if (one.name.empty()) return;
    const std::string_view is = std::string_view(one.text).substr(one.text.find(" = ") + 3);
    if (is.starts_with('('))
      tuples_[one.name] = is.substr(0, is.rfind(')') + 1);
    else
      calls_[one.name] = static_cast<size_t>(&one - statements_.data());
  }

  // A count is read where its part ends, and a number behind it.
  void read_count(Statement& one) {
    constexpr std::string_view kSymbol = "symbol=\"";
    const size_t at = one.text.find(kSymbol);
    if (at == std::string::npos || one.references.size() != 2) return;
    const size_t begin = at + kSymbol.size();
    const std::string symbol = one.text.substr(begin, one.text.find('"', begin) - begin);
    const Reference count = one.references.back();
    one.references.pop_back();
    one.text.replace(count.begin, count.end - count.begin, "{" + symbol + "}i64");
    counts_.emplace(symbol, count);
  }

  size_t part_of(const Reference& reference) const {
    const auto call = calls_.find(reference.call);
    return call == calls_.end() ? 0 : statements_[call->second].part;
  }

  // A text may read a symbol before the call that says what it is.
  void place() {
    size_t last = 0;
    for (bool moved = true; std::exchange(moved, false);)
      for (Statement& one : statements_) {
        size_t part = &one == &statements_.back() ? last : 0;
        for (const Reference& reference : one.references) {
          const auto call = calls_.find(reference.call);
          if (call == calls_.end()) continue;
          const Statement& made = statements_[call->second];
          part = std::max(part, made.part + (begins_part(one.text) || made.ends_part ? 1 : 0));
        }
        for (const std::string& symbol : one.symbols)
          if (const auto count = counts_.find(symbol); count != counts_.end())
            part = std::max(part, part_of(count->second) + 1);
        moved = moved || part != one.part;
        one.part = part;
        last = std::max(last, part);
      }
  }

  ModulePart part(size_t number) const {
    ModulePart made;
    std::set<std::string> inputs, outputs, symbols, terms;
    const auto is_result = [&](const Statement& one) { return &one == &statements_.back(); };
    for (const Statement& one : statements_) {
      const bool is_here = one.part == number && !is_result(one) && tuples_.count(one.name) == 0;
      std::string text = one.text;
      for (auto read = one.references.rbegin(); read != one.references.rend(); ++read) {
        const bool made_here = !read->call.empty() && part_of(*read) == number;
        if (made_here && !is_here) outputs.insert(read->value);
        if (made_here || !is_here) continue;
        inputs.insert(read->value);
        text.replace(read->begin, read->end - read->begin, variable(read->value));
      }
      if (!is_here) continue;
      made.body += text;
      symbols.insert(one.symbols.begin(), one.symbols.end());
      terms.insert(one.terms.begin(), one.terms.end());
    }
    for (const auto& [symbol, count] : counts_) {
      if (!count.call.empty() && part_of(count) == number) outputs.insert(count.value);
      if (symbols.count(symbol) != 0) made.counts[symbol] = count.value;
    }
    made.inputs.assign(inputs.begin(), inputs.end());
    for (const std::string& input : made.inputs) made.variables.push_back(variable(input));
    made.outputs.assign(outputs.begin(), outputs.end());
    for (const std::string& term : terms) made.terms.push_back(*parse_symbol_term(term));
    const std::string results = fmt::format("{}", fmt::join(outputs, ", "));
    made.body += outputs.size() == 1 ? "  " + results + "\n" : "  (" + results + ")\n";
    return made;
  }

  // Of a part that reads the value.
  std::string variable(const std::string& value) const {
    if (value[0] != '%') return "%" + attr_to_string(AttrValue(value));
    std::string made = "%" + prefix_ + value.substr(1);
    std::replace(made.begin(), made.end(), '.', '_');
    return made;
  }

  std::vector<Statement> statements_;
  const std::vector<std::string>& symbols_;
  std::set<std::string> params_;
  std::string prefix_ = "v";
  std::map<std::string, size_t> calls_;        // statements, by their names
  std::map<std::string, std::string> tuples_;  // "(%1, %2)"
  std::map<std::string, Reference> counts_;    // what holds each counted size
};

/// Gives a part the constants that its body reads: the metadata is a line for each.
void take_constants(ModulePart& part, std::string_view metadata) {
  constexpr std::string_view kRead = "meta[relay.Constant][";
  std::vector<std::string_view> lines;
  std::string_view before, after = metadata;
  for (size_t at = 0; at < metadata.size();) {
    const size_t end = std::min(metadata.find('\n', at), metadata.size() - 1) + 1;
    if (metadata.substr(at, end - at).starts_with("    {")) {
      if (lines.empty()) before = metadata.substr(0, at);
      lines.push_back(metadata.substr(at, end - at));
      after = metadata.substr(end);
    }
    at = end;
  }
  std::map<size_t, size_t> taken;  // new numbers, by the old ones
  std::string body;
  size_t from = 0;
  for (size_t at = 0; (at = part.body.find(kRead, from)) != std::string::npos;) {
    at += kRead.size();
    const size_t end = part.body.find(']', at);
    const size_t number = std::stoul(part.body.substr(at, end - at));
    body += part.body.substr(from, at - from);
    body += std::to_string(taken.emplace(number, taken.size()).first->second);
    from = end;
  }
  // Metadata of another form is left as it is.
  if (!taken.empty() && taken.rbegin()->first >= lines.size()) {
    part.metadata = metadata;
    return;
  }
  part.body = body + part.body.substr(from);
  std::vector<std::string_view> read(taken.size());
  for (const auto& [number, place] : taken) read[place] = lines[number];
  part.metadata = before;
  for (size_t i = 0; i < read.size(); ++i) {
    std::string_view line = read[i];
    while (line.ends_with('\n') || line.ends_with(',')) line.remove_suffix(1);
    part.metadata += fmt::format("{}{}\n", line, i + 1 < read.size() ? "," : "");
  }
  part.metadata += after;
  if (read.empty()) part.metadata.clear();
}

size_t lines_of(std::string_view text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// A call a line, as text is printed.
Result<SymbolicModule> printed(const SymbolicModule& module) {
  const auto make = [&](const Symbols& sizes) { return module.instantiate(sizes); };
  Symbols any;
  for (const std::string& symbol : module.symbols()) any[symbol] = 8;
  const Result<Module> one = make(any);
  if (one.ok() && module.text().starts_with("#[version") &&
      lines_of(to_text(*one)) == lines_of(module.text()))
    return module;
  return generalise(module.symbols(), make);
}

}  // namespace

Result<ModuleParts> ModuleParts::of(const SymbolicModule& module) {
  ModuleParts made(TRY(printed(module)));
  const std::string& text = made.module_.text();
  const size_t header = text.find("\ndef @main(") + 1, body = text.find("{\n", header) + 2;
  const size_t end = text.find("\n}\n", body) + 1;
  if (header == 0 || text.find("\ndef @") + 1 != header ||
      text.find("\ndef @", end) != std::string::npos)
    return unsupported("a module that counts sizes has @main alone");
  made.before_ = text.substr(0, header);
  const Cut cut(statements_of(std::string_view(text).substr(body, end - body)), made.module_);
  made.results_ = TRY(cut.results());
  made.parts_ = cut.parts();
  for (ModulePart& part : made.parts_) take_constants(part, std::string_view(text).substr(end + 2));
  return made;
}

Result<Module> ModuleParts::instantiate(const ModulePart& part,
                                        const std::vector<TensorType>& inputs,
                                        const Symbols& values) const {
  std::string params;
  for (size_t i = 0; i < inputs.size(); ++i)
    params += fmt::format("{}{}: {}", i == 0 ? "" : ", ", part.variables[i], inputs[i].to_string());
  const std::string text =
      fmt::format("{}def @main({}) {{\n{}}}\n{}", before_, params, part.body, part.metadata);
  Module module = TRY(module_.read(text, values));
  if (module.main()->body->type().leaves().size() != part.outputs.size())
    return unsupported("a tuple is read behind the part that makes it");
  return module;
}

Result<std::vector<Tensor>> ModuleParts::run(std::map<std::string, Tensor> tensors,
                                             const ComputePart& compute) const {
  std::map<std::string, Shape> shapes;
  for (const SymbolicTensor& param : module_.params()) {
    const auto given = tensors.find(param.name);
    if (given == tensors.end()) return bad_model("there is no tensor '{}'", param.name);
    shapes[param.name] = given->second.shape();
  }
  Symbols values = TRY(module_.bind(shapes, {}));
  for (size_t i = 0; i < parts_.size(); ++i) {
    const ModulePart& part = parts_[i];
    for (const auto& [symbol, count] : part.counts)
      values[symbol] = tensors.at(count).element_as_int64(0);
    std::vector<Tensor> inputs;
    for (const std::string& name : part.inputs) inputs.push_back(tensors.at(name));
    std::vector<Tensor> outputs = TRY(compute(i, values, inputs));
    for (size_t k = 0; k < outputs.size(); ++k) tensors[part.outputs[k]] = std::move(outputs[k]);
  }
  std::vector<Tensor> results;
  for (const std::string& name : results_) results.push_back(tensors.at(name));
  return results;
}

std::string ModuleParts::key(size_t number, const Symbols& values,
                             const std::vector<Tensor>& inputs) const {
  const ModulePart& part = parts_[number];
  std::string key = fmt::format("{}:", number);
  for (const Term& term : part.terms)
    key += fmt::format(" {}={}", term_to_string(term), value_of(term, values).value_or(0));
  for (size_t i = 0; i < inputs.size(); ++i)
    key += fmt::format(" {} {}", part.inputs[i], shape_to_string(inputs[i].shape()));
  return key;
}

}  // namespace collage::tensor_program
