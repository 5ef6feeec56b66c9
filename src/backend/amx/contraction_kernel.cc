#include "backend/amx/contraction_kernel.h"

#include <omp.h>

#include <algorithm>
#include <limits>

#include "backend/amx/geometry.h"
#include "backend/amx/packed_operand.h"
#include "base/integers.h"

namespace collage::amx {
namespace {

struct Range {
  int64_t begin, end;
};
Range share(int64_t count, int index, int of) {
  return {count * index / of, count * (index + 1) / of};
}

class ContractionKernel : public Kernel {
 public:
  ContractionKernel(Contraction contraction, Schedule schedule, int threads)
      : c_(std::move(contraction)),
        schedule_(schedule),
        threads_(threads),
        geometry_(plan_geometry(c_)) {}

  Status prepare() {
    TRY(matrix_unit());  // asks for it
    packed_ = TRY(PackedOperand::create(c_, schedule_.parts));
    const int64_t bytes = copy_bytes(c_, geometry_, schedule_.parts);
    if (bytes > std::numeric_limits<int32_t>::max())
      return unsupported("amx: a copy of {} bytes", bytes);
    for (int64_t block = 0; block < depth_blocks(c_); ++block)
      for (int64_t shift : geometry_.shifts)
        steps_.push_back(static_cast<int32_t>((block * geometry_.positions + shift) * row_bytes()));
    c_.weights = {};  // packed
    return {};
  }

  size_t workspace_bytes() const override {
    return static_cast<size_t>(copy_bytes(c_, geometry_, schedule_.parts));
  }
  size_t constant_bytes() const override { return packed_.bytes(); }

  Status run(const KernelArgs& args) override {
    const auto* image = static_cast<const float*>(args.inputs[c_.data]);
    auto* copy = static_cast<uint16_t*>(args.workspace);
    std::vector<const float*> tensors;
    for (int param : c_.step_params)
      tensors.push_back(param < 0 ? nullptr : static_cast<const float*>(args.inputs[param]));
    auto* out = static_cast<float*>(args.outputs[0]);
#pragma omp parallel num_threads(threads_)
    {
      const int index = omp_get_thread_num(), team = omp_get_num_threads();
      const Range positions = share(geometry_.positions, index, team);
      copy_image(c_, geometry_, schedule_.parts, image, positions.begin, positions.end, copy);
#pragma omp barrier
      multiply(index, team, copy, tensors, out);
    }
    return {};
  }

 private:
  int64_t row_bytes() const { return schedule_.parts * kTileDepth * 2; }
  int64_t row_blocks() const { return ceil_div(geometry_.tiles(), 2); }

  void multiply(int index, int team, const uint16_t* copy, const std::vector<const float*>& tensors,
                float* out) const {
    Range rows{0, row_blocks()}, columns{0, packed_.column_blocks()};
    Range& shared = schedule_.by_columns ? columns : rows;
    shared = share(shared.end, index, team);
    const TileScope scope;
    if (schedule_.weights_outer) {
      for (int64_t column = columns.begin; column < columns.end; ++column)
        for (int64_t row = rows.begin; row < rows.end; ++row)
          compute(row, column, copy, tensors, out, row == rows.begin);
    } else {
      for (int64_t row = rows.begin; row < rows.end; ++row)
        for (int64_t column = columns.begin; column < columns.end; ++column)
          compute(row, column, copy, tensors, out, row == rows.begin);
    }
  }

  void compute(int64_t row, int64_t column, const uint16_t* copy,
               const std::vector<const float*>& tensors, float* out, bool ahead) const {
    alignas(64) float sums[2 * kTileRows * kBlockColumns];
    const int down = 2 * row + 1 < geometry_.tiles() ? 2 : 1;
    const int across = packed_.tiles_across(column);
    Block block{};
    for (int i = 0; i < down; ++i)
      block.a[i] =
          copy + geometry_.tile_positions[static_cast<size_t>(2 * row + i)] * (row_bytes() / 2);
    block.a_row_bytes = row_bytes();
    block.steps = steps_.data();
    block.step_count = static_cast<int64_t>(steps_.size());
    block.b = packed_.block(column);
    block.c = sums;
    block.ahead = ahead;
    multiply_block(block, down, across, schedule_.parts);
    const int64_t plane = c_.channels_last ? kTileColumns : c_.pixels_out() * kTileColumns;
    for (int j = 0; j < across; ++j) {
      const int64_t tile_column = 2 * column + j, first = tile_column * kTileColumns;
      for (int i = 0; i < down; ++i)
        finish_tile(c_.steps, sums + i * kTileRows * kBlockColumns + j * kTileColumns,
                    {&geometry_.tile_rows[static_cast<size_t>((2 * row + i) * kTileRows)],
                     tile_column * plane, first,
                     static_cast<int>(std::min(kTileColumns, c_.out_channels - first)),
                     !c_.channels_last, out, tensors});
    }
  }

  Contraction c_;
  Schedule schedule_;
  int threads_;
  Geometry geometry_;
  PackedOperand packed_;
  std::vector<int32_t> steps_;  ///< bytes from a tile's first row to each step's
};

}  // namespace

std::string Schedule::to_string() const {
  return std::string(kPartsNames[parts - 1]) + (by_columns ? " columns" : " rows") +
         (weights_outer ? " weights outer" : "");
}

std::vector<Schedule> schedules(const Contraction& c, int parts, int threads) {
  constexpr int64_t kCached = 1 << 20;  // bytes of weights that stay in a core's own cache
  const int64_t bytes = 2 * parts * round_up(c.in_channels, kTileDepth) * c.taps() *
                        round_up(c.out_channels, kTileColumns);
  const int64_t rows = c.images * c.pixels_out(), blocks = 2 * kTileRows;
  std::vector<Schedule> list;
  if (threads == 1 || rows >= threads * blocks || c.out_channels < threads * kBlockColumns)
    list.push_back({parts, false, bytes > kCached});
  if (threads > 1 && c.out_channels >= threads * kBlockColumns &&
      (list.empty() || bytes > kCached / 4))
    list.push_back({parts, true, true});
  return list;
}

Result<std::unique_ptr<Kernel>> make_contraction_kernel(Contraction contraction,
                                                        const Schedule& schedule, int threads) {
  auto kernel = std::make_unique<ContractionKernel>(std::move(contraction), schedule, threads);
  TRY(kernel->prepare());
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace collage::amx
