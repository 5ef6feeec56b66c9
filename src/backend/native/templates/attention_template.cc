#include "backend/native/templates/attention_template.h"

#include <algorithm>
#include <limits>

#include "backend/native/codegen/halide_names.h"
#include "backend/native/templates/register_tile.h"

namespace collage::native {
namespace {

int64_t tile_of(int64_t n, int64_t most) {
  int64_t best = std::min(n, most);
  double cost = 1e9;
  for (int64_t t = std::min(n, most); t >= 1; --t) {
    const double waste = in_tiles(n, t) * (1.0 + 0.03 * static_cast<double>(most - t));
    if (waste < cost - 1e-9) {
      cost = waste;
      best = t;
    }
  }
  return best;
}

}  // namespace

std::string AttentionSchedule::to_string() const {
  return "attention q" + std::to_string(queries) + " tiles " + std::to_string(key_tile) + "x" +
         std::to_string(query_tile);
}

AttentionSchedule attention_schedule(const AttentionShape& s, bool avx512) {
  AttentionSchedule schedule;
  schedule.queries = to_int(std::min<int64_t>(s.queries, avx512 && s.queries >= 32 ? 32 : 16));
  const auto rows = [&](int blocks) { return avx512 ? 24 / blocks : most_rows(blocks, avx512); };
  schedule.key_tile = to_int(tile_of(s.keys, rows(std::max(1, schedule.queries / 16))));
  if (s.value_width % 16 == 0)
    schedule.columns = to_int(std::min<int64_t>(avx512 ? 4 : 2, s.value_width / 16));
  schedule.query_tile = to_int(tile_of(schedule.queries, rows(schedule.columns)));
  return schedule;
}

int64_t attention_span(const AttentionShape& s, const AttentionSchedule& sched) {
  const bool whole_tasks = s.queries % sched.queries == 0 && sched.queries >= sched.key_tile;
  return s.causal && whole_tasks ? sched.queries : s.queries;
}

Func build_attention(const AttentionShape& s, const AttentionSchedule& sched, const Access& q,
                     const Access& k, const Access& v, const Access& mask) {
  Var qi("query"), t("key"), d("column"), c("value"), span("span");
  std::vector<Var> outer{span};  // then the batch, innermost first
  for (size_t i = 0; i < s.batch.size(); ++i) outer.emplace_back("batch" + std::to_string(i));
  auto vars = [&](std::vector<Var> head) {
    head.insert(head.end(), outer.begin(), outer.end());
    return head;
  };
  auto at = [&](std::vector<HExpr> head) {
    for (const Var& b : outer) head.push_back(b);
    return head;
  };
  auto coords = [&](const HExpr& row, const HExpr& column) {
    Coords result;
    for (size_t i = outer.size(); i-- > 1;) result.logical.push_back(outer[i]);
    result.logical.push_back(row);
    result.logical.push_back(column);
    return result;
  };

  const int length = to_int(attention_span(s, sched));
  const HExpr query = span * length + qi;
  auto keys = [&] {
    RDom r(0, to_int(s.keys));
    if (s.causal && length < s.queries) r.where(r < (span + 1) * length);
    return r;
  };
  const int block = std::min<int>(sched.queries, length);
  const int lanes = block % 16 == 0 ? 16 : block;
  Func turned("turned"), sums("sums"), scores("scores"), largest("largest"), weights("weights"),
      total("total"), acc("acc"), out("output");
  turned(vars({qi, d})) = q(coords(query, d)) * s.scale;
  RDom rd(0, to_int(s.width));
  sums(vars({qi, t})) = 0.0f;
  sums(vars({qi, t})) += turned(at({qi, rd})) * k(coords(t, rd));
  HExpr score = sums(at({qi, t}));
  if (mask) score = score + mask(coords(query, t));
  // The future gets -infinity, for no mask may hide the visible keys more. Not by a select on
  // t <= query: Halide would divide the loops by it, over and over.
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  if (s.causal)
    score = exact_sum(score, Halide::reinterpret<float>(((query - t) >> 31) & kMinusInfinityBits));
  scores(vars({qi, t})) = score;
  RDom rm = keys();
  largest(vars({qi})) = kLowest;
  largest(vars({qi})) = Halide::max(largest(at({qi})), scores(at({qi, rm})));
  weights(vars({qi, t})) = vector_exp(scores(at({qi, t})) - largest(at({qi})));
  RDom rs = keys();
  total(vars({qi})) = 0.0f;
  total(vars({qi})) += weights(at({qi, rs}));
  RDom rv = keys();
  acc(vars({c, qi})) = 0.0f;
  acc(vars({c, qi})) += weights(at({qi, rv})) * v(coords(rv, c));
  out(vars({c, qi})) = acc(at({c, qi})) / total(at({qi}));
  out.bound(c, 0, to_int(s.value_width))
      .bound(qi, 0, length)
      .bound(span, 0, to_int(s.queries / length));

  Var task("task"), qo("qo"), qn("qn"), qt("qt"), co("co"), cn("cn"), to("to"), tn("tn");
  const int width = to_int(std::min<int64_t>(16, s.value_width));
  const int columns = sched.columns * width;
  out.split(qi, task, qi, block)
      .split(qi, qo, qn, std::min(sched.query_tile, block))
      .split(c, co, cn, columns);
  std::vector<Halide::VarOrRVar> order{cn, qn, co, qo, task};
  for (const Var& b : outer) order.push_back(b);
  out.reorder(order);
  out.vectorize(cn, width).unroll(qn);
  for (const Var& b : outer) out.fuse(task, b, task);
  out.parallel(task);
  acc.compute_at(out, co);
  acc.vectorize(c, width).unroll(c).unroll(qi);
  acc.update().reorder(c, qi, rv).vectorize(c, width).unroll(c).unroll(qi);

  turned.compute_at(out, task).vectorize(qi, lanes);
  largest.compute_at(out, task).vectorize(qi, lanes);
  largest.update().reorder(qi, rm).vectorize(qi, lanes).unroll(qi);
  total.compute_at(out, task).vectorize(qi, lanes);
  total.update().reorder(qi, rs).vectorize(qi, lanes).unroll(qi);
  scores.compute_at(out, task)
      .split(t, to, tn, std::min<int>(sched.key_tile, to_int(s.keys)))
      .reorder(qi, tn, to);
  scores.vectorize(qi, lanes).unroll(qi).unroll(tn);
  sums.compute_at(scores, to).vectorize(qi, lanes).unroll(qi).unroll(t);
  sums.update().reorder(qi, t, rd).vectorize(qi, lanes).unroll(qi).unroll(t);
  weights.compute_at(out, task).vectorize(qi, lanes).unroll(qi);
  return out;
}

}  // namespace collage::native
