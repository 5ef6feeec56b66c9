#include "tensor_program/simplify.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "tensor_program/range.h"

namespace collage::tensor_program {
namespace {

class Simplifier {
 public:
  explicit Simplifier(const std::vector<Axis>& axes) : ranges_(axes) {}

  Term operator()(const Term& term) {
    switch (term->op) {
      case TermOp::kMultiply:
        return multiply(term);
      case TermOp::kAdd:
        return add(term);
      case TermOp::kDivide:
      case TermOp::kModulo:
        return divide(term);
      case TermOp::kMin:
      case TermOp::kMax:
        return bound(term);
      default:
        return term;
    }
  }

 private:
  /// A constant factor stands on the right.
  static Term multiply(const Term& term) {
    const Term &left = term->args[0], &right = term->args[1];
    return known_integer(left) && !known_integer(right) ? right * left : term;
  }

  /// x / c * c + x % c; and the same with both multiplied by one factor.
  Term add(const Term& term) {
    const Term &left = term->args[0], &right = term->args[1];
    if (left->op != TermOp::kMultiply) return term;
    const auto c = known_integer(left->args[1]);
    if (!c || *c <= 0) return term;
    if (right->op == TermOp::kMultiply) {
      const auto d = known_integer(right->args[1]);
      if (!d || *d <= 0 || *c % *d != 0) return term;
      const Term sum = left->args[0] * integer_constant(*c / *d, term.dtype()) + right->args[0];
      const Term whole = sum->op == TermOp::kAdd ? add(sum) : sum;
      return whole->op == TermOp::kAdd ? term : whole * right->args[1];
    }
    if (right->op != TermOp::kModulo || !is_integer_constant(right->args[1], *c)) return term;
    const Term& x = right->args[0];
    return same(divide(x / right->args[1]), left->args[0]) ? x : term;
  }

  /// (q * c + r) / c and % c, for 0 <= r < c; x / c and x % c for 0 <= x < c; (x % (c d)) % c; x /
  /// d / c; (x * d + r) / (c d) and % (c d), for 0 <= r < d.
  Term divide(const Term& term) {
    if (term->op != TermOp::kDivide && term->op != TermOp::kModulo) return term;
    const Term& x = term->args[0];
    const auto c = known_integer(term->args[1]);
    if (!c || *c <= 0 || is_float(term.dtype())) return term;
    const bool quotient = term->op == TermOp::kDivide;
    if (const auto r = ranges_.of(x); r && r->low >= 0 && r->high < *c)
      return quotient ? integer_constant(0, term.dtype()) : x;
    if (const auto [whole, rest] = multiple(x, *c); whole.defined()) {
      if (!rest.defined()) return quotient ? whole : integer_constant(0, term.dtype());
      const Term of_rest = divide(quotient ? rest / term->args[1] : rest % term->args[1]);
      return quotient ? whole + of_rest : of_rest;
    }
    if (!quotient && x->op == TermOp::kModulo) {
      const auto outer = known_integer(x->args[1]);
      if (outer && *outer > 0 && *outer % *c == 0) return divide(x->args[0] % term->args[1]);
    }
    if (quotient && x->op == TermOp::kDivide) {
      const auto inner = known_integer(x->args[1]);
      if (inner && *inner > 0 && *inner <= INT32_MAX / *c)
        return divide(x->args[0] / integer_constant(*inner * *c, term.dtype()));
    }
    if (x->op == TermOp::kAdd && x->args[0]->op == TermOp::kMultiply) {
      const auto d = known_integer(x->args[0]->args[1]);
      const auto r = ranges_.of(x->args[1]);
      if (d && *d > 1 && *c % *d == 0 && r && r->low >= 0 && r->high < *d) {
        const Term outer = integer_constant(*c / *d, term.dtype());
        const Term& whole = x->args[0]->args[0];
        return quotient ? divide(whole / outer)
                        : divide(whole % outer) * x->args[0]->args[1] + x->args[1];
      }
    }
    return term;
  }

  struct Parts {
    Term whole, rest;
  };
  /// x as whole * c + rest, where some addend is a multiple of c.
  static Parts multiple(const Term& x, int64_t c) {
    if (x->op == TermOp::kMultiply) {
      const auto factor = known_integer(x->args[1]);
      if (factor && *factor % c == 0)
        return {x->args[0] * integer_constant(*factor / c, x.dtype()), {}};
      return {};
    }
    if (x->op != TermOp::kAdd) return {};
    Parts left = multiple(x->args[0], c), right = multiple(x->args[1], c);
    if (!left.whole.defined() && !right.whole.defined()) return {};
    if (!left.whole.defined()) left.rest = x->args[0];
    if (!right.whole.defined()) right.rest = x->args[1];
    const auto sum = [](const Term& a, const Term& b) {
      return !a.defined() ? b : !b.defined() ? a : a + b;
    };
    return {sum(left.whole, right.whole), sum(left.rest, right.rest)};
  }

  /// A minimum or maximum whose sides are ordered.
  Term bound(const Term& term) {
    const auto a = ranges_.of(term->args[0]), b = ranges_.of(term->args[1]);
    if (!a || !b) return term;
    const bool least = term->op == TermOp::kMin;
    if (a->high <= b->low) return term->args[least ? 0 : 1];
    if (b->high <= a->low) return term->args[least ? 1 : 0];
    return term;
  }

  Ranges ranges_;
};

class Rewriter {
 public:
  explicit Rewriter(const std::function<Term(const Term&)>& rule) : rule_(rule) {}

  Term run(const Term& term) {
    if (auto found = memo_.find(term.get()); found != memo_.end()) return found->second.second;
    std::vector<Term> args;
    bool changed = false;
    for (const Term& arg : term->args) {
      args.push_back(run(arg));
      changed = changed || args.back().get() != arg.get();
    }
    Term made = term;
    if (changed)
      made = term->op == TermOp::kLoad ? load(term->name, term->dtype, std::move(args))
                                       : make_term(term->op, std::move(args), term->dtype);
    made = rule_(made);
    memo_[term.get()] = {term, made};
    return made;
  }

 private:
  const std::function<Term(const Term&)>& rule_;
  std::unordered_map<const TermNode*, std::pair<Term, Term>> memo_;
};

}  // namespace

Term rewrite(const Term& term, const std::function<Term(const Term&)>& rule) {
  return Rewriter(rule).run(term);
}

Term simplify(const Term& term, const std::vector<Axis>& axes) {
  Simplifier simplifier(axes);
  return rewrite(term, [&](const Term& t) { return simplifier(t); });
}

Term substitute(const Term& term, const std::vector<Replacement>& replacements) {
  return rewrite(term, [&](const Term& t) {
    if (t->op == TermOp::kVar)
      for (const Replacement& replacement : replacements)
        if (replacement.variable == t->name) return replacement.by;
    return t;
  });
}

}  // namespace collage::tensor_program
