// Einsum as transposes, reshapes, sums and one batched matrix product a pair of operands:
//
//   "bhqd,bhkd->bhqk"   batch b, h; rows q; columns k; summed d
//
// Operands are taken left to right. A letter that no later operand and no result needs is summed as
// soon as possible; a letter twice in one operand takes its diagonal.
#include <algorithm>
#include <map>
#include <string>

#include "frontend/onnx/operators/converters.h"

namespace collage::frontend {

namespace {

// An expression and the letter of each of its axes. Axes that "…" stands for get upper-case
// letters that the equation cannot hold: characters from kEllipsis on, the last axis the largest.
struct Term {
  Expr data;
  std::string letters;
};
constexpr char kEllipsis = '\x01';

bool holds(const std::string& text, char letter) { return text.find(letter) != std::string::npos; }

Result<std::vector<std::string>> split_terms(const std::string& text) {
  std::vector<std::string> terms(1);
  for (char c : text) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  for (const std::string& term : terms)
    for (char c : term)
      if (!std::isalpha(static_cast<unsigned char>(c)) && c != '.')
        return bad_model("equation holds '{}'", c);
  return terms;
}

// Replaces "..." by one letter for each of `count` axes.
Result<std::string> expand_ellipsis(const std::string& term, int64_t count) {
  const size_t at = term.find('.');
  if (at == std::string::npos) return term;
  if (term.compare(at, 3, "...") != 0 || term.find('.', at + 3) != std::string::npos)
    return bad_model("equation term '{}' has a wrong ellipsis", term);
  if (count < 0 || count > 20) return bad_model("equation term '{}' does not fit its rank", term);
  std::string letters;
  for (int64_t i = count; i-- > 0;) letters += static_cast<char>(kEllipsis + i);
  return term.substr(0, at) + letters + term.substr(at + 3);
}

// Puts two axes of the same letter side by side, joins them and takes every (extent+1)th element.
Result<Term> take_diagonals(NodeContext& node, Term term) {
  for (size_t i = 0; i < term.letters.size(); ++i) {
    const size_t j = term.letters.find(term.letters[i], i + 1);
    if (j == std::string::npos) continue;
    Shape shape = shape_of(term.data);
    const int64_t extent = shape[i];
    if (shape[j] != extent)
      return bad_model("'{}' is {} and {} long", term.letters[i], extent, shape[j]);
    Ints order;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (axis != i && axis != j) order.push_back(static_cast<int64_t>(axis));
    const char letter = term.letters[i];
    std::string letters;
    Shape joined;
    for (int64_t axis : order) {
      letters += term.letters[static_cast<size_t>(axis)];
      joined.push_back(shape[static_cast<size_t>(axis)]);
    }
    order.push_back(static_cast<int64_t>(i));
    order.push_back(static_cast<int64_t>(j));
    joined.push_back(extent * extent);
    std::vector<int64_t> places;
    for (int64_t k = 0; k < extent; ++k) places.push_back(k * (extent + 1));
    Expr data = TRY(node.reshape(TRY(node.transpose(term.data, order)), joined));
    Expr indices = node.constant_of(Tensor::from<int64_t>({extent}, places));
    term.data =
        TRY(node.call("take", {data, indices}, {{"axis", static_cast<int64_t>(letters.size())}}));
    term.letters = letters + letter;
    return take_diagonals(node, std::move(term));
  }
  return term;
}

// Sums the axes whose letters `needed` does not hold.
Result<Term> sum_unneeded(NodeContext& node, Term term, const std::string& needed) {
  Ints axes;
  std::string letters;
  for (size_t i = 0; i < term.letters.size(); ++i) {
    if (holds(needed, term.letters[i])) {
      letters += term.letters[i];
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  if (axes.empty()) return term;
  Expr data = TRY(node.call("sum", {term.data}, {{"axis", axes}, {"keepdims", false}}));
  return Term{data, letters};
}

// The axes of `term` in the order of `letters`; a letter it lacks becomes an axis of 1.
Result<Expr> arrange(NodeContext& node, const Term& term, const std::string& letters) {
  Ints order;
  Shape shape;
  for (char letter : letters) {
    const size_t at = term.letters.find(letter);
    shape.push_back(at == std::string::npos ? 1 : shape_of(term.data)[at]);
    if (at != std::string::npos) order.push_back(static_cast<int64_t>(at));
  }
  return node.reshape(TRY(node.transpose(term.data, order)), shape);
}

int64_t extent_of(const Term& term, char letter) {
  const size_t at = term.letters.find(letter);
  return at == std::string::npos ? 1 : shape_of(term.data)[at];
}

// One product of two terms in which only the letters of `needed` survive.
Result<Term> contract(NodeContext& node, Term a, Term b, const std::string& needed) {
  // What only one of them has and nobody needs goes first.
  a = TRY(sum_unneeded(node, std::move(a), needed + b.letters));
  b = TRY(sum_unneeded(node, std::move(b), needed + a.letters));
  std::string batch, rows, columns, summed;
  for (char letter : a.letters) {
    if (!holds(b.letters, letter)) {
      rows += letter;
    } else if (holds(needed, letter)) {
      batch += letter;
    } else {
      summed += letter;
    }
  }
  for (char letter : b.letters)
    if (!holds(a.letters, letter)) columns += letter;
  Shape batch_a, batch_b, result;
  int64_t m = 1, n = 1, k = 1;
  for (char letter : batch) {
    const int64_t x = extent_of(a, letter), y = extent_of(b, letter);
    if (x != y && x != 1 && y != 1) return bad_model("an axis is {} and {} long", x, y);
    batch_a.push_back(x);
    batch_b.push_back(y);
    result.push_back(std::max(x, y));
  }
  for (char letter : rows) result.push_back(extent_of(a, letter)), m *= result.back();
  for (char letter : columns) result.push_back(extent_of(b, letter)), n *= result.back();
  for (char letter : summed) {
    if (extent_of(a, letter) != extent_of(b, letter))
      return bad_model("'{}' is {} and {} long", letter, extent_of(a, letter),
                       extent_of(b, letter));
    k *= extent_of(a, letter);
  }
  Shape left = batch_a, right = batch_b;
  if (summed.empty() && (rows.empty() || columns.empty())) {  // element by element
    Expr x = TRY(arrange(node, a, batch + rows + columns));
    Expr y = TRY(arrange(node, b, batch + rows + columns));
    return Term{TRY(node.call("multiply", {x, y})), batch + rows + columns};
  }
  left.insert(left.end(), {m, k});
  right.insert(right.end(), {k, n});
  Expr x = TRY(node.reshape(TRY(arrange(node, a, batch + rows + summed)), left));
  Expr y = TRY(node.reshape(TRY(arrange(node, b, batch + summed + columns)), right));
  Expr product = TRY(node.call("nn.matmul", {x, y}));
  return Term{TRY(node.reshape(product, result)), batch + rows + columns};
}

// Without an arrow the result has the ellipsis, then every letter that occurs once, in order.
std::string implied_result(const std::vector<std::string>& terms, const std::string& ellipsis) {
  std::map<char, int> count;
  for (const std::string& term : terms)
    for (char letter : term) ++count[letter];
  std::string result = ellipsis;
  for (const auto& [letter, times] : count)
    if (std::isalpha(static_cast<unsigned char>(letter)) && times == 1) result += letter;
  return result;
}

Result<Expr> convert_einsum(NodeContext& node) {
  std::string equation = TRY(node.text("equation"));
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  std::vector<std::string> terms = TRY(split_terms(equation.substr(0, arrow)));
  if (terms.size() != node.num_inputs())
    return bad_model("equation '{}' has {} terms for {} inputs", equation, terms.size(),
                     node.num_inputs());
  int64_t ellipsis_rank = 0;
  std::vector<Term> operands;
  for (size_t i = 0; i < terms.size(); ++i) {
    const int64_t named = static_cast<int64_t>(terms[i].size());
    const bool open = holds(terms[i], '.');
    const int64_t rest = open ? node.rank(i) - named + 3 : 0;
    terms[i] = TRY(expand_ellipsis(terms[i], rest));
    ellipsis_rank = std::max(ellipsis_rank, rest);
    if (static_cast<int64_t>(terms[i].size()) != node.rank(i))
      return bad_model("equation '{}' gives input {} another rank than {}", equation, i,
                       node.rank(i));
    operands.push_back(TRY(take_diagonals(node, {node.in(i), terms[i]})));
  }
  std::string result;
  if (arrow == std::string::npos) {
    result = implied_result(terms, TRY(expand_ellipsis("...", ellipsis_rank)));
  } else {
    std::vector<std::string> parts = TRY(split_terms(equation.substr(arrow + 2)));
    if (parts.size() != 1) return bad_model("equation '{}' has several results", equation);
    result = TRY(expand_ellipsis(parts[0], ellipsis_rank));
  }
  for (size_t i = 0; i < result.size(); ++i)
    if (holds(result.substr(0, i), result[i]) ||
        std::none_of(terms.begin(), terms.end(),
                     [&](const std::string& term) { return holds(term, result[i]); }))
      return bad_model("equation '{}' repeats or invents a letter in its result", equation);

  Term total = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    std::string needed = result;
    for (size_t later = i + 1; later < operands.size(); ++later) needed += operands[later].letters;
    total = TRY(contract(node, std::move(total), operands[i], needed));
  }
  total = TRY(sum_unneeded(node, std::move(total), result));
  return arrange(node, total, result);
}

}  // namespace

ConverterRows einsum_converters() { return {{"Einsum", 1, -1, single(convert_einsum)}}; }

}  // namespace collage::frontend
