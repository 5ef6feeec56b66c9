#include "frontend/script/generalise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "frontend/script/symbol_terms.h"
#include "ir/text_printer.h"

namespace collage::tensor_program {
namespace {

constexpr std::string_view kMetadata = "#[metadata]";
/// Below these a call that does nothing at some size may be left out.
constexpr int64_t kUsualSize = 4;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Of literals, behind their digits.
std::string_view suffix_of(std::string_view word) {
  for (const std::string_view suffix : {"i64", "f64", "f", "i8", "i16", "u8", "u16", "u32", "u64"})
    if (word.ends_with(suffix)) return suffix;
  return "";
}

/// A text in pieces: integers, and what lies between them. Names, strings, numbers that are no
/// integers (2.5f) and suffixes of literals (3i64) lie between.
struct Pieces {
  std::vector<std::string_view> between;  // one more than integers
  std::vector<int64_t> integers;

  static Pieces of(std::string_view text) {
    Pieces made;
    size_t start = 0, at = 0;
    while (at < text.size()) {
      if (text[at] == '"') {
        for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
        ++at;
      } else if (is_word(text[at]) || text[at] == '%' || text[at] == '@') {
        const size_t word = at++;
        // A point goes on with a number, and a sign with its exponent.
        while (at < text.size() &&
               (is_word(text[at]) || (is_digit(text[word]) && text[at] == '.') ||
                (is_digit(text[word]) && text[at - 1] == 'e' && text[at] == '-')))
          ++at;
        std::string_view piece = text.substr(word, at - word);
        const std::string_view suffix = is_digit(piece[0]) ? suffix_of(piece) : "";
        piece.remove_suffix(suffix.size());
        int64_t value = 0;
        const auto read = std::from_chars(piece.data(), piece.data() + piece.size(), value);
        if (read.ec != std::errc() || read.ptr != piece.data() + piece.size()) continue;
        made.between.push_back(text.substr(start, word - start));
        made.integers.push_back(value);
        start = at - suffix.size();
      } else {
        ++at;
      }
    }
    made.between.push_back(text.substr(start));
    return made;
  }
};

struct Instance {
  std::string text;
  std::vector<Tensor> constants;
  Pieces pieces;
};

Instance instance_of(const Module& module) {
  Instance made;
  PrintOptions options;
  options.constants = PrintOptions::Constants::kSideFile;
  options.side_file = SymbolicModule::kSideFile;
  options.side_tensors = &made.constants;
  made.text = to_text(module, options);
  made.pieces = Pieces::of(made.text);
  return made;
}

bool same_constant(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.raw() == b.raw() || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

/// The line that a difference lies in.
std::string line_at(const Instance& of, const char* at) {
  const size_t place = static_cast<size_t>(at - of.text.data());
  const size_t start = place == 0 ? 0 : of.text.rfind('\n', place - 1) + 1;
  const size_t end = std::min(of.text.find('\n', place), of.text.size());
  const size_t first = of.text.find_first_not_of(' ', start);
  return of.text.substr(std::min(first, end), std::min<size_t>(end - std::min(first, end), 120));
}

/// Empty where both differ in integers at most; else what else does.
std::string difference(const Instance& a, const Instance& b) {
  const size_t count = std::min(a.pieces.between.size(), b.pieces.between.size());
  for (size_t i = 0; i < count; ++i) {
    const std::string_view one = a.pieces.between[i], other = b.pieces.between[i];
    if (one == other) continue;
    const auto at = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
    return fmt::format("'{}' is '{}'",
                       line_at(a, one.data() + std::distance(one.begin(), at.first)),
                       line_at(b, other.data() + std::distance(other.begin(), at.second)));
  }
  if (a.pieces.between.size() != b.pieces.between.size()) return "one has more calls";
  for (size_t i = 0; i < a.constants.size(); ++i)
    if (!same_constant(a.constants[i], b.constants[i]))
      return fmt::format("constant {} is another", i);
  return "";
}

/// What instances at points of one grid have in common.
class Family {
 public:
  Family(ExtentPoints points, const MakeModule& make) : points_(std::move(points)), make_(make) {}

  Status read() {
    for (const Symbols& point : points_.points) {
      const bool of_grid = integers_.size() < points_.count_of_grid;
      const bool is_usual = std::all_of(point.begin(), point.end(),
                                        [](const auto& size) { return size.second >= kUsualSize; });
      const Result<Module> module = make_(point);
      integers_.emplace_back();
      if (!module.ok()) {
        if (of_grid && point.empty()) return module.status();
        if (of_grid) return Status(module.status()).with_context(values_text(point));
        continue;
      }
      Instance instance = instance_of(*module);
      if (integers_.size() == 1) {
        first_ = std::move(instance);
        first_.pieces = Pieces::of(first_.text);
        integers_[0] = first_.pieces.integers;
      } else if (const std::string what = difference(first_, instance); what.empty()) {
        integers_.back() = std::move(instance.pieces.integers);
      } else if (of_grid || is_usual) {
        return unsupported("with {} and with {} it differs: {}", values_text(points_.points[0]),
                           values_text(point), what);
      } else {
        others_.emplace_back(point, module->main()->body->type());
      }
    }
    return {};
  }

  /// The text over symbols. A result of whose extent no term is known is not stated.
  Result<std::string> text() const {
    std::string made;
    size_t cut = std::string::npos;  // where such a result begins
    size_t dropped = 0;              // of what follows
    for (size_t i = 0; i < first_.pieces.between.size(); ++i) {
      std::string_view between = first_.pieces.between[i];
      between.remove_prefix(std::exchange(dropped, 0));
      if (cut == std::string::npos) {
        made += between;
      } else if (const size_t body = between.find('{'); body != std::string_view::npos) {
        made.replace(cut, std::string::npos, between.substr(body));
        cut = std::string::npos;
      }
      if (i == first_.pieces.integers.size() || cut != std::string::npos) continue;
      const std::optional<std::string> term = TRY(term_of(i));
      if (term && std::all_of(term->begin(), term->end(), is_digit)) {
        made += *term;
        continue;
      }
      if (term) {
        dropped = add_term(made, *term, first_.pieces.between[i + 1]);
        continue;
      }
      const char* place = between.data() + between.size();
      const size_t line = made.rfind('\n') + 1, arrow = made.rfind(") -> ");
      if (made.compare(line, 4, "def ") != 0 || arrow == std::string::npos || arrow < line)
        return unsupported("no term over sizes is {} with {}, and what it is with others: '{}'",
                           first_.pieces.integers[i], values_text(points_.points[0]),
                           line_at(first_, place));
      cut = arrow + 2;
    }
    return made;
  }

  std::vector<Tensor> constants() { return std::move(first_.constants); }

  /// Compares results' types at sizes where other calls are made.
  Status check(const SymbolicModule& module) const {
    for (const auto& [sizes, type] : others_) {
      const Result<Module> made = module.instantiate(sizes);
      if (made.ok() && made->main()->body->type() != type)
        return unsupported("with {} the result is {}, not {}", values_text(sizes), type.to_string(),
                           made->main()->body->type().to_string());
    }
    return {};
  }

 private:
  // A scalar is in braces in front of its suffix; an attribute is the term, whatever its kind.
  // Returns how much of what follows is left out.
  static size_t add_term(std::string& made, const std::string& term, std::string_view following) {
    const bool is_argument = made.ends_with("(") || made.ends_with(", ");
    const size_t line = made.rfind('\n') + 1;
    const bool in_list =
        std::count(made.begin() + static_cast<std::ptrdiff_t>(line), made.end(), '[') >
        std::count(made.begin() + static_cast<std::ptrdiff_t>(line), made.end(), ']');
    if (is_argument && !in_list) {
      made += "{" + term + "}";
      return 0;
    }
    made += term;
    const size_t word = static_cast<size_t>(
        std::find_if_not(following.begin(), following.end(), is_word) - following.begin());
    return suffix_of(following.substr(0, word)).size();
  }

  // Of the i-th integer; none where no term is known.
  Result<std::optional<std::string>> term_of(size_t i) const {
    std::vector<std::optional<int64_t>> values;
    bool varies = false;
    for (const auto& integers : integers_) {
      values.emplace_back();
      if (integers) values.back() = (*integers)[i];
      varies = varies || (integers && values.back() != values[0]);
    }
    if (!varies) return std::optional(std::to_string(*values[0]));
    const std::string_view before = first_.pieces.between[i];
    const auto place = static_cast<size_t>(before.data() + before.size() - first_.text.data());
    if (place > first_.text.find(kMetadata))
      return unsupported("a constant holds {} with {}, and something else with other sizes",
                         *values[0], values_text(points_.points[0]));
    return fitted_extent(points_, values);
  }

  const ExtentPoints points_;
  const MakeModule& make_;
  Instance first_;
  std::vector<std::optional<std::vector<int64_t>>> integers_;  // of the text, at each point
  std::vector<std::pair<Symbols, Type>> others_;               // results where other calls are made
};

Result<SymbolicModule> generalise_on(const std::vector<std::string>& symbols, int64_t step,
                                     const MakeModule& make) {
  Status told;
  for (const int64_t divisor : kExtentDivisors) {
    Family family(ExtentPoints::of(symbols, step, divisor), make);
    TRY(family.read());
    Result<std::string> text = family.text();
    told = text.status();
    if (!text.ok()) continue;
    SymbolicModule module = TRY(SymbolicModule::parse(std::move(*text), family.constants()));
    TRY(family.check(module));
    for (const std::string& symbol : symbols)
      if (std::count(module.symbols().begin(), module.symbols().end(), symbol) == 0)
        return unsupported("symbol {} is no dimension of an input", symbol);
    return module;
  }
  return told;
}

}  // namespace

Result<SymbolicModule> generalise(const std::vector<std::string>& symbols, const MakeModule& make) {
  Status told;
  for (const int64_t step : kExtentSteps) {
    Result<SymbolicModule> made = generalise_on(symbols, step, make);
    if (made.ok()) return made;
    // Large sizes do not fit some models: the smallest say what is wrong, but where some fit and
    // are no family.
    const bool fits_none = told.code() != ErrorCode::kUnsupported;
    if (fits_none || made.status().code() == ErrorCode::kUnsupported) told = made.status();
  }
  return told;
}

}  // namespace collage::tensor_program
