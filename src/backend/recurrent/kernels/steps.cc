#include "backend/recurrent/kernels/steps.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace collage::recurrent {
namespace {

using Floats16 = float __attribute__((vector_size(64)));
using Integers16 = int32_t __attribute__((vector_size(64)));
using Floats8 = float __attribute__((vector_size(32)));
using Integers8 = int32_t __attribute__((vector_size(32)));

/// Vectors of AVX-512 and AVX2; rows are what accumulators of four gates leave registers for.
struct Wide {
  using Floats = Floats16;
  using Integers = Integers16;
  static constexpr int64_t kLanes = 16, kRows = 4;
};
struct Narrow {
  using Floats = Floats8;
  using Integers = Integers8;
  static constexpr int64_t kLanes = 8, kRows = 2;
};

// Inlined into a function for one instruction set each: no vector is an argument or a result.
#define COLLAGE_INLINE [[gnu::always_inline]] inline
#define COLLAGE_LAMBDA __attribute__((always_inline))

/// body(0), body(1) …, each with a constant: only so do arrays of vectors stay in registers.
template <int64_t... kIndices, typename Body>
COLLAGE_INLINE void for_indices(std::integer_sequence<int64_t, kIndices...>, const Body& body) {
  (body(std::integral_constant<int64_t, kIndices>()), ...);
}
template <int64_t kCount, typename Body>
COLLAGE_INLINE void unrolled(const Body& body) {
  for_indices(std::make_integer_sequence<int64_t, kCount>(), body);
}

template <typename V, typename T>
COLLAGE_INLINE void load(V& to, const T* from) {
  std::memcpy(&to, from, sizeof(V));
}

/// x = e^x, within 2^-22 of itself between -87 and 88, and as at these beyond them. NaN stays.
template <typename Isa>
COLLAGE_INLINE void exponential(typename Isa::Floats& x) {
  using Floats = typename Isa::Floats;
  using Integers = typename Isa::Integers;
  x = x < -87.0f ? Floats{} - 87.0f : x;
  x = x > 88.0f ? Floats{} + 88.0f : x;
  // x = n log 2 + r, |r| <= log(2) / 2; the polynomial is the series of e^r, whose rest is 2^-26.
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: a sum with it has no digits behind the point
  const Floats rounded = x * 1.44269504f + kRound;
  const Floats n = rounded - kRound;
  const Floats r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  Floats p = Floats{} + 1.0f / 5040;
  for (const float factor : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
    p = p * r + factor;
  Integers bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  bits = (bits - 0x4b400000 + 127) << 23;
  Floats power;
  std::memcpy(&power, &bits, sizeof(power));
  x = p * power;
}

template <typename Isa>
COLLAGE_INLINE void logistic(typename Isa::Floats& x) {
  x = -x;
  exponential<Isa>(x);
  x = 1.0f / (x + 1.0f);
}

/// Near 0 by the polynomial of Cephes (S. Moshier, tanhf.c), else by e^2x.
template <typename Isa>
COLLAGE_INLINE void hyperbolic_tangent(typename Isa::Floats& x) {
  using Floats = typename Isa::Floats;
  const Floats size = x < 0.0f ? -x : x;
  const Floats z = x * x;
  Floats p = Floats{} - 5.70498872745e-3f;
  for (const float factor :
       {2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f})
    p = p * z + factor;
  const Floats near = x * z * p + x;
  Floats e = size + size;
  exponential<Isa>(e);
  const Floats far = 1.0f - 2.0f / (e + 1.0f);
  x = size < 0.625f ? near : x < 0.0f ? -far : far;
}

/// sums[g][r] += row r of `a` times the columns of gate g, for a part of a panel's lanes.
template <typename Isa, int64_t kGates, int64_t kRows>
COLLAGE_INLINE void multiply_rows(const float* a, int64_t stride, int64_t depth,
                                  const float* weights,
                                  typename Isa::Floats (&sums)[kGates][kRows]) {
  for (int64_t k = 0; k < depth; ++k, weights += kGates * kPanel) {
    typename Isa::Floats columns[kGates];
    unrolled<kGates>([&](auto g) COLLAGE_LAMBDA { load(columns[g], weights + g * kPanel); });
    unrolled<kRows>([&](auto r) COLLAGE_LAMBDA {
      const float x = a[r * stride + k];
      unrolled<kGates>([&](auto g) COLLAGE_LAMBDA { sums[g][r] += x * columns[g]; });
    });
  }
}

/// Calls body(tile of kRows or 1 rows, first row) until all rows are done.
template <int64_t kRows, typename Body>
COLLAGE_INLINE void for_rows(int64_t rows, const Body& body) {
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) body.template operator()<kRows>(row);
  for (; row < rows; ++row) body.template operator()<1>(row);
}

struct Panel {
  Panel(const Layer& layer, const Arrays& arrays, int64_t panel)
      : direction(panel / layer.panels()),
        unit(panel % layer.panels() * kPanel),
        valid(std::min(kPanel, layer.hidden - unit)),
        backwards(layer.reverse || direction == 1),
        inputs(arrays.packed + panel * layer.packed()),
        recurrent(inputs + layer.inputs * layer.width()),
        bias(recurrent + layer.hidden * layer.width()) {
    const int64_t cells = layer.batch * layer.padded(), all = layer.directions * cells;
    products = arrays.workspace + panel * layer.chunk() * layer.batch * layer.width();
    float* states = arrays.workspace +
                    layer.directions * layer.panels() * layer.chunk() * layer.batch * layer.width();
    for (int64_t i = 0; i < 2; ++i) state[i] = states + i * all + direction * cells;
    cell = states + 2 * all + direction * cells;
  }
  /// The place of a step in time.
  int64_t time(const Layer& layer, int64_t step) const {
    return backwards ? layer.steps - 1 - step : step;
  }

  int64_t direction, unit, valid;
  bool backwards;
  const float *inputs, *recurrent, *bias;
  float* products;  ///< (steps of a chunk, batch, gates, 16)
  float* state[2];  ///< of all panels of the direction, (batch, padded); a step reads the one of
                    ///< its parity
  float* cell;
};

void begin_panel(const Layer& layer, const Arrays& arrays, int64_t panel) {
  const Panel p(layer, arrays, panel);
  for (int64_t b = 0; b < layer.batch; ++b) {
    const int64_t from = (p.direction * layer.batch + b) * layer.hidden + p.unit,
                  to = b * layer.padded() + p.unit;
    const auto copy = [&](const float* given, float* own) {
      std::copy_n(given + from, p.valid, own + to);
      std::fill_n(own + to + p.valid, kPanel - p.valid, 0.0f);
    };
    copy(arrays.h0, p.state[0]);
    if (layer.gates == 4) copy(arrays.c0, p.cell);
  }
}

template <typename Isa, int64_t kGates>
COLLAGE_INLINE void multiply_panel(const Layer& layer, const Arrays& arrays, int64_t panel,
                                   int64_t first, int64_t count) {
  const Panel p(layer, arrays, panel);
  // The steps of a chunk are rows beside one another, also backwards.
  const int64_t begin = p.backwards ? layer.steps - first - count : first;
  for (int64_t lane = 0; lane < kPanel; lane += Isa::kLanes)
    for_rows<Isa::kRows>(count * layer.batch, [&]<int64_t kRows>(int64_t row) COLLAGE_LAMBDA {
      typename Isa::Floats sums[kGates][kRows];
      unrolled<kGates * kRows>([&](auto i) COLLAGE_LAMBDA {
        load(sums[i / kRows][i % kRows], p.bias + i / kRows * kPanel + lane);
      });
      multiply_rows<Isa, kGates, kRows>(arrays.data + (begin * layer.batch + row) * layer.inputs,
                                        layer.inputs, layer.inputs, p.inputs + lane, sums);
      unrolled<kGates * kRows>([&](auto i) COLLAGE_LAMBDA {
        std::memcpy(p.products + ((row + i % kRows) * kGates + i / kRows) * kPanel + lane,
                    &sums[i / kRows][i % kRows], sizeof(typename Isa::Floats));
      });
    });
}

template <typename Isa, int64_t kGates>
COLLAGE_INLINE void advance_panel(const Layer& layer, const Arrays& arrays, int64_t panel,
                                  int64_t first, int64_t step) {
  using Floats = typename Isa::Floats;
  const Panel p(layer, arrays, panel);
  const int64_t count = std::min(layer.chunk(), layer.steps - first),
                place = p.backwards ? count - 1 - (step - first) : step - first;
  const float *products = p.products + place * layer.batch * layer.width(),
              *before = p.state[step % 2];
  float* after = p.state[(step + 1) % 2];
  const bool last = step + 1 == layer.steps;
  for (int64_t lane = 0; lane < kPanel; lane += Isa::kLanes) {
    const int64_t valid = std::clamp<int64_t>(p.valid - lane, 0, Isa::kLanes);
    for_rows<Isa::kRows>(layer.batch, [&]<int64_t kRows>(int64_t row) COLLAGE_LAMBDA {
      Floats sums[kGates][kRows];
      unrolled<kGates * kRows>([&](auto i) COLLAGE_LAMBDA {
        constexpr int64_t kGate = i / kRows, kRow = i % kRows;
        load(sums[kGate][kRow], kGates == 3 && kGate == 2
                                    ? p.bias + kGates * kPanel + lane
                                    : products + ((row + kRow) * kGates + kGate) * kPanel + lane);
      });
      multiply_rows<Isa, kGates, kRows>(before + row * layer.padded(), layer.padded(), layer.hidden,
                                        p.recurrent + lane, sums);
      unrolled<kRows>([&](auto r) COLLAGE_LAMBDA {
        const int64_t b = row + r, at = b * layer.padded() + p.unit + lane;
        Floats h, cell = {};
        if constexpr (kGates == 1) {
          h = sums[0][r];
          if (layer.relu) {
            h = h < 0.0f ? Floats{} : h;
          } else {
            hyperbolic_tangent<Isa>(h);
          }
        } else if constexpr (kGates == 3) {
          Floats update = sums[0][r], reset = sums[1][r], candidate, state;
          logistic<Isa>(update);
          logistic<Isa>(reset);
          load(candidate, products + (b * kGates + 2) * kPanel + lane);
          candidate += reset * sums[2][r];
          hyperbolic_tangent<Isa>(candidate);
          load(state, before + at);
          h = (1.0f - update) * candidate + update * state;
        } else {
          Floats in = sums[0][r], out = sums[1][r], forget = sums[2][r], made = sums[3][r];
          logistic<Isa>(in);
          logistic<Isa>(out);
          logistic<Isa>(forget);
          hyperbolic_tangent<Isa>(made);
          load(cell, p.cell + at);
          cell = forget * cell + in * made;
          std::memcpy(p.cell + at, &cell, sizeof(cell));
          h = cell;
          hyperbolic_tangent<Isa>(h);
          h *= out;
        }
        std::memcpy(after + at, &h, sizeof(h));
        const auto give = [&](float* to, int64_t t, const Floats& from) COLLAGE_LAMBDA {
          std::memcpy(to + ((t * layer.directions + p.direction) * layer.batch + b) * layer.hidden +
                          p.unit + lane,
                      &from, static_cast<size_t>(valid) * sizeof(float));
        };
        if (valid == 0) return;
        give(arrays.y, p.time(layer, step), h);
        if (last) give(arrays.h, 0, h);
        if (last && kGates == 4) give(arrays.c, 0, cell);
      });
    });
  }
}

template <int64_t kGates>
struct OfAvx512 {
  [[gnu::target("avx512f")]] static void multiply(const Layer& layer, const Arrays& arrays,
                                                  int64_t panel, int64_t first, int64_t count) {
    multiply_panel<Wide, kGates>(layer, arrays, panel, first, count);
  }
  [[gnu::target("avx512f")]] static void advance(const Layer& layer, const Arrays& arrays,
                                                 int64_t panel, int64_t first, int64_t step) {
    advance_panel<Wide, kGates>(layer, arrays, panel, first, step);
  }
};

template <int64_t kGates>
struct OfAvx2 {
  [[gnu::target("avx2,fma")]] static void multiply(const Layer& layer, const Arrays& arrays,
                                                   int64_t panel, int64_t first, int64_t count) {
    multiply_panel<Narrow, kGates>(layer, arrays, panel, first, count);
  }
  [[gnu::target("avx2,fma")]] static void advance(const Layer& layer, const Arrays& arrays,
                                                  int64_t panel, int64_t first, int64_t step) {
    advance_panel<Narrow, kGates>(layer, arrays, panel, first, step);
  }
};

template <template <int64_t> typename Of>
const PanelCode* code_of(int64_t gates) {
  static constexpr PanelCode kCodes[] = {{begin_panel, Of<1>::multiply, Of<1>::advance},
                                         {begin_panel, Of<3>::multiply, Of<3>::advance},
                                         {begin_panel, Of<4>::multiply, Of<4>::advance}};
  return &kCodes[gates == 1 ? 0 : gates == 3 ? 1 : 2];
}

}  // namespace

int64_t Layer::chunk() const {
  constexpr int64_t kMostProducts = int64_t{1} << 20;  // floats
  return std::clamp<int64_t>(kMostProducts / (directions * panels() * batch * width()), 1, steps);
}

int64_t Layer::workspace_floats() const {
  return directions * batch * (panels() * chunk() * width() + 3 * padded());
}

const PanelCode* panel_code(int64_t gates, bool wide) {
  if (wide) return __builtin_cpu_supports("avx512f") ? code_of<OfAvx512>(gates) : nullptr;
  const bool known = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return known ? code_of<OfAvx2>(gates) : nullptr;
}

}  // namespace collage::recurrent
