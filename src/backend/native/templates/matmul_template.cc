#include "backend/native/templates/matmul_template.h"

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "backend/native/codegen/halide_names.h"
#include "backend/native/templates/register_tile.h"
#include "ops/half.h"

namespace collage::native {
namespace {

// Bytes of A that are read again for each tile of columns, from L2.
constexpr int64_t kLongestRows = 1280 << 10, kRowsOfTask = 640 << 10;

template <typename... Tail>
std::vector<HExpr> outermost_first(const std::vector<Var>& batch, Tail... tail) {
  std::vector<HExpr> index(batch.rbegin(), batch.rend());
  (index.push_back(tail), ...);
  return index;
}

template <typename... Head>
std::vector<HExpr> innermost_first(const std::vector<Var>& batch, Head... head) {
  std::vector<HExpr> index{head...};
  for (const Var& v : batch) index.push_back(v);
  return index;
}

std::vector<Var> vars_of(std::vector<Var> head, const std::vector<Var>& batch) {
  head.insert(head.end(), batch.begin(), batch.end());
  return head;
}

template <typename T>
T stored(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return float_to_half(value, DType::kBFloat16);
  }
}

/// The float a packed weight stands for.
HExpr weight_value(const HExpr& packed) {
  if (packed.type().is_float()) return packed;
  return Halide::reinterpret<float>(Halide::cast<uint32_t>(packed) << 16);
}

}  // namespace

std::string MatmulSchedule::to_string() const {
  return "m" + std::to_string(m_tile) + " n" + std::to_string(n_tile) + " tasks n" +
         std::to_string(n_task) + " m" + std::to_string(m_task) + (pack_a ? " packed" : "") +
         (streams > 1 ? " streams" + std::to_string(streams) : "") + (ahead ? " ahead" : "");
}

std::vector<int64_t> packed_matmul_extents(const MatmulShape& s) {
  return {kPanel, s.k, ceil_div(s.n, kPanel)};
}

template <typename T>
PackedWeights<T> pack_matmul_weights(const MatmulShape& s, const float* b, int64_t k_stride,
                                     int64_t n_stride) {
  const int64_t panels = ceil_div(s.n, kPanel);
  PackedWeights<T> packed(panels * s.k * kPanel);
#pragma omp parallel for schedule(static)
  for (int64_t p = 0; p < panels; ++p) {
    const int64_t columns = std::min<int64_t>(kPanel, s.n - p * kPanel);
    for (int64_t k = 0; k < s.k; ++k) {
      T* to = packed.data() + (p * s.k + k) * kPanel;
      const float* from = b + k * k_stride + p * kPanel * n_stride;
      for (int64_t j = 0; j < columns; ++j) to[j] = stored<T>(from[j * n_stride]);
    }
  }
  return packed;
}
template PackedWeights<float> pack_matmul_weights(const MatmulShape&, const float*, int64_t,
                                                  int64_t);
template PackedWeights<uint16_t> pack_matmul_weights(const MatmulShape&, const float*, int64_t,
                                                     int64_t);

std::vector<MatmulSchedule> matmul_schedules(const MatmulProblem& p, int threads, bool avx512) {
  const MatmulShape& s = p.shape;
  const int64_t panels = ceil_div(s.n, kPanel);
  const int64_t batch =
      std::accumulate(s.batch.begin(), s.batch.end(), int64_t{1}, std::multiplies<>());
  struct Tile {
    int m, n;
    double cost;
  };
  std::vector<Tile> tiles;
  for (int n : {1, 2, 3, 4, 6}) {
    if (panels % n != 0 || (n > 4 && s.m > 2)) continue;
    // One row alone would read the weights once for each.
    for (int m = s.m > 1 ? 2 : 1; m <= std::min<int64_t>(s.m, most_rows(n, avx512)); ++m) {
      const double waste = static_cast<double>(ceil_div(s.m, m) * m) / static_cast<double>(s.m);
      double cost = waste * tile_cost(n, m, avx512);
      if (n >= 3 && m > 4) cost *= n == 3 ? 1.05 : 1.2;
      tiles.push_back({m, n, cost});
    }
  }
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const Tile& a, const Tile& c) { return a.cost < c.cost; });
  std::vector<MatmulSchedule> found;
  const bool pack_a = !p.a_is_buffer || s.m >= 8;
  // Weights from memory: the second schedule is the first that reads them ahead, or where they
  // serve one pass only, in two sequences: one leaves half of a core's bandwidth unused.
  const bool heavy = p.constant_b && pack_a && s.k * s.n * 4 > (1 << 20);
  const bool again = s.m > tiles[0].m;
  const bool modified = heavy && (again || s.k % 32 == 0);
  for (size_t i = 0; i < tiles.size() && i < 2; ++i) {
    const Tile& t = tiles[modified ? 0 : i];
    MatmulSchedule sched;
    sched.m_tile = t.m;
    sched.n_tile = t.n;
    sched.pack_a = pack_a;
    sched.ahead = modified && i == 1 && again;
    sched.streams = modified && i == 1 && !again ? 2 : 1;
    const int64_t n_tiles = panels / t.n, m_tiles = ceil_div(s.m, t.m);
    // The rows a task passes and its panels both stay in L2.
    const int64_t panel_bytes = s.k * kPanel * t.n * 4, row_bytes = s.k * t.m * 4;
    const bool long_rows = s.m * s.k * 4 > (1 << 20) && m_tiles > 1;
    int64_t n_task = std::clamp<int64_t>(
        (long_rows ? 768 << 10 : 256 << 10) / std::max<int64_t>(1, panel_bytes), 1, n_tiles);
    int64_t m_task =
        long_rows ? std::clamp<int64_t>((256 << 10) / std::max<int64_t>(1, row_bytes), 1, m_tiles)
                  : m_tiles;
    const auto tasks = [&] {
      return ceil_div(n_tiles, n_task) * ceil_div(m_tiles, m_task) * batch;
    };
    while (n_task > 1 && tasks() < 4 * threads) n_task = (n_task + 1) / 2;
    while (n_tiles % n_task != 0) --n_task;
    if (s.k * s.n * 4 <= (1 << 19) && m_tiles * batch >= 2 * threads)
      n_task = n_tiles;  // few columns: divide rows only
    while (m_task > 1 && tasks() < 4 * threads) m_task = (m_task + 1) / 2;
    if (sched.ahead) {
      // Few tasks, since the first tile of each comes from memory: by columns while all of A stays
      // in L2, else by rows that do.
      const bool short_rows = row_bytes * m_tiles <= kLongestRows;
      const int64_t blocks = round_up(ceil_div(row_bytes * m_tiles, kRowsOfTask), threads);
      n_task = short_rows ? ceil_div(n_tiles, 2 * threads) : n_tiles;
      m_task = short_rows ? m_tiles : ceil_div(m_tiles, blocks);
    }
    sched.n_task = to_int(n_task);
    sched.m_task = to_int(m_task == m_tiles ? 0 : m_task);
    found.push_back(sched);
    if (i == 0 && m_tiles * batch >= 2 * threads && n_task != n_tiles &&
        s.k * s.n * 4 <= (3 << 20)) {
      // By rows: all of B in L2 while a strip of rows passes.
      MatmulSchedule rows = sched;
      rows.n_task = to_int(n_tiles);
      rows.m_task = to_int(std::clamp<int64_t>(m_tiles * batch / (8 * threads), 1, m_tiles));
      found.push_back(rows);
    }
  }
  return found;
}

Halide::Func build_matmul(const MatmulProblem& p, const MatmulSchedule& sched, const Access& a,
                          const Access& b, ImageParam weights, const Epilogue& epilogue) {
  const MatmulShape& s = p.shape;
  const int64_t panels = ceil_div(s.n, kPanel);
  const bool ragged = s.n % kPanel != 0;
  const int mt = to_int(std::min<int64_t>(sched.m_tile, s.m));
  Var nl("nl"), n("n"), m("m"), nb("nb"), k("k"), kl("kl"), ko("ko");
  std::vector<Var> batch;  // innermost first
  for (size_t i = 0; i < s.batch.size(); ++i) batch.emplace_back("b" + std::to_string(i));

  // Operands.
  const bool pack_a = sched.pack_a || !p.a_is_buffer;
  const int64_t k_block = s.k >= 16 ? 16 : s.k;
  const bool k_ragged = s.k % k_block != 0;
  Func packed_a("packed_a");
  if (pack_a) {
    HExpr at = ko * to_int(k_block) + kl;
    if (k_ragged) at = Halide::min(at, to_int(s.k - 1));
    HExpr value = a(Coords{outermost_first(batch, HExpr(m), at), {}, {}});
    if (k_ragged) value = Halide::select(ko * to_int(k_block) + kl < to_int(s.k), value, 0.0f);
    packed_a(vars_of({kl, m, ko}, batch)) = value;
  }
  Func packed_b("packed_b");
  if (!p.constant_b) {
    HExpr at = nb * kPanel + nl;
    if (ragged) at = Halide::min(at, to_int(s.n - 1));
    packed_b(vars_of({nl, k, nb}, batch)) = b(Coords{outermost_first(batch, HExpr(k), at), {}, {}});
  }

  Func acc("acc");
  acc(vars_of({nl, m, nb}, batch)) = 0.0f;
  RDom r;
  if (pack_a) {
    r = RDom(0, to_int(k_block), 0, to_int(ceil_div(s.k, k_block)), "r");
  } else {
    r = RDom(0, to_int(s.k), "r");
  }
  HExpr rk = pack_a ? HExpr(r[1]) * to_int(k_block) + r[0] : HExpr(r[0]);
  if (pack_a && k_ragged) rk = Halide::min(rk, to_int(s.k - 1));
  HExpr left = pack_a ? packed_a(innermost_first(batch, HExpr(r[0]), HExpr(m), HExpr(r[1])))
                      : a(Coords{outermost_first(batch, HExpr(m), rk), {}, {}});
  HExpr right = p.constant_b ? weight_value(weights(nl, rk, nb))
                             : packed_b(innermost_first(batch, HExpr(nl), rk, HExpr(nb)));
  acc(vars_of({nl, m, nb}, batch)) += right * left;
  acc.bound(nl, 0, kPanel);

  // The core is tiled; where columns are ragged it is a blocked scratch that the output is copied
  // from.
  Func out("output"), core("core");
  Var no("no"), ni("ni"), mo("mo"), mi("mi"), task("task"), ms("ms"), ns("ns");
  auto finish = [&](HExpr column, HExpr block, HExpr lane) {
    HExpr clamped = ragged ? Halide::min(column, to_int(s.n - 1)) : column;
    return epilogue(acc(innermost_first(batch, lane, HExpr(m), block)),
                    Coords{outermost_first(batch, HExpr(m), clamped), {}, {}});
  };
  Func tiled = ragged ? core : out;
  if (ragged) {
    core(vars_of({nl, m, nb}, batch)) = finish(nb * kPanel + nl, nb, nl);
    out(vars_of({n, m}, batch)) = core(innermost_first(batch, n % kPanel, HExpr(m), n / kPanel));
    core.bound(nl, 0, kPanel).bound(nb, 0, to_int(panels)).bound(m, 0, to_int(s.m));
    core.split(nb, no, nb, sched.n_tile);
  } else {
    out(vars_of({n, m}, batch)) = finish(n, n / kPanel, n % kPanel);
    out.bound(n, 0, to_int(s.n)).bound(m, 0, to_int(s.m));
    out.split(n, no, ni, sched.n_tile * kPanel).split(ni, nb, nl, kPanel);
  }
  tiled.split(m, mo, mi, mt);
  const int64_t n_tiles = panels / sched.n_tile;
  tiled.split(no, ns, no, to_int(std::clamp<int64_t>(sched.n_task, 1, n_tiles)),
              TailStrategy::GuardWithIf);
  const int64_t m_tiles = ceil_div(s.m, mt);
  const int64_t m_task = sched.m_task <= 0 ? m_tiles : std::min<int64_t>(sched.m_task, m_tiles);
  tiled.split(mo, ms, mo, to_int(m_task), TailStrategy::GuardWithIf);
  {
    std::vector<Halide::VarOrRVar> order{nl, nb, mi, mo, no, ms, ns};
    for (const Var& v : batch) order.push_back(v);
    tiled.reorder(order);
  }
  tiled.fuse(ms, ns, task);
  for (const Var& v : batch) tiled.fuse(task, v, task);
  tiled.parallel(task).vectorize(nl).unroll(nb).unroll(mi);
  if (ragged) {
    core.compute_root();
    out.vectorize(n, std::min<int>(8, to_int(s.n)));
    if (s.m > 1 && s.m * s.n > 65536) out.parallel(m);
  }

  acc.compute_at(tiled, mo);
  acc.vectorize(nl).unroll(m).unroll(nb);
  RVar ri("ri"), ro("ro");
  if (pack_a) {
    const int unroll = k_block % 4 == 0 ? 4 : 1;
    RVar rs("rs"), rb("rb");
    acc.update()
        .split(r[0], ro, ri, unroll)
        .split(r[1], rs, rb, to_int(ceil_div(s.k, k_block) / sched.streams))
        .reorder(std::vector<Halide::VarOrRVar>{nl, nb, m, ri, rs, ro, rb})
        .unroll(rs);
  } else {
    int unroll = 4;
    while (s.k % unroll != 0) unroll /= 2;
    acc.update()
        .split(r[0], ro, ri, unroll)
        .reorder(std::vector<Halide::VarOrRVar>{nl, nb, m, ri, ro});
  }
  acc.update().vectorize(nl).unroll(nb).unroll(m).unroll(ri);

  if (pack_a) {
    // A task that makes every column of its rows packs those rows itself.
    const bool local = sched.n_task >= n_tiles;
    if (local) {
      packed_a.compute_at(tiled, task);
    } else {
      packed_a.compute_root();
    }
    packed_a.vectorize(kl, to_int(k_block));
    // Row after row, a line apart: rows of a tile at a power of two would share few cache sets.
    packed_a.reorder_storage(vars_of({kl, ko, m}, batch));
    packed_a.align_storage(ko, to_int(ceil_div(s.k, k_block)) + 1);
    std::vector<Halide::VarOrRVar> order{kl, ko, m};
    for (const Var& v : batch) order.push_back(v);
    packed_a.reorder(order);
    Var t("t"), mm("mm");
    packed_a.split(m, m, mm, to_int(std::min<int64_t>(local ? 1 : 8, s.m)));
    std::vector<Halide::VarOrRVar> order2{kl, ko, mm, m};
    packed_a.reorder(order2);
    if (local) {
    } else if (batch.empty()) {
      packed_a.parallel(m);
    } else {
      packed_a.fuse(m, batch[0], t);
      for (size_t i = 1; i < batch.size(); ++i) packed_a.fuse(t, batch[i], t);
      packed_a.parallel(t);
    }
  }
  if (!p.constant_b) {
    packed_b.compute_root().vectorize(nl);
    packed_b.bound(nl, 0, kPanel);
    Var t("t");
    if (batch.empty()) {
      packed_b.parallel(nb);
    } else {
      packed_b.fuse(nb, batch[0], t);
      for (size_t i = 1; i < batch.size(); ++i) packed_b.fuse(t, batch[i], t);
      packed_b.parallel(t);
    }
  }
  return out;
}

}  // namespace collage::native
