#include "backend/amx/contraction_kernel.h"

#include <omp.h>

#include <algorithm>
#include <limits>

#include "backend/amx/geometry.h"
#include "backend/amx/packed_operand.h"
#include "base/integers.h"

namespace collage::amx {
namespace {

constexpr int64_t kBlockRows = 2 * kTileRows;

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
        geometry_(plan_geometry(c_)),
        row_blocks_(ceil_div(geometry_.tiles(), 2)) {
    // Rows of one tap need no neighbours: a thread copies some of them when it gets to them.
    private_copies_ = c_.taps() == 1;
    const int64_t wanted = schedule_.weights_outer
                               ? 1 << 20
                               : 32 << 10;
    chunk_ = private_copies_
                 ? std::clamp<int64_t>(wanted / copy_bytes(c_, kBlockRows, schedule_.parts), 1,
                                       row_blocks_)
                 : row_blocks_;
    pitch_ = private_copies_ ? chunk_ * kBlockRows : geometry_.positions;
  }

  Status prepare() {
    TRY(matrix_unit());  // asks for it
    packed_ = TRY(PackedOperand::create(c_, schedule_.parts));
    if (copy_size() > std::numeric_limits<int32_t>::max())
      return unsupported("amx: a copy of {} bytes", copy_size());
    for (int64_t block = 0; block < depth_blocks(c_); ++block)
      for (int64_t shift : geometry_.shifts)
        steps_.push_back(static_cast<int32_t>((block * pitch_ + shift) * row_bytes()));
    c_.weights = {};  // packed
    return {};
  }

  size_t workspace_bytes() const override {
    return static_cast<size_t>((private_copies_ ? threads_ : 1) * copy_size());
  }
  size_t constant_bytes() const override { return packed_.bytes(); }

  Status run(const KernelArgs& args) override {
    Call call{
        static_cast<const float*>(args.inputs[c_.data]), static_cast<float*>(args.outputs[0]), {}};
    for (int param : c_.step_params)
      call.tensors.push_back(param < 0 ? nullptr : static_cast<const float*>(args.inputs[param]));
    auto* workspace = static_cast<char*>(args.workspace);
#pragma omp parallel num_threads(threads_)
    {
      const int index = omp_get_thread_num(), team = omp_get_num_threads();
      Range rows{0, row_blocks_}, columns{0, packed_.column_blocks()};
      Range& shared = schedule_.by_columns ? columns : rows;
      shared = share(shared.end, index, team);
      if (private_copies_) {
        auto* copy = reinterpret_cast<uint16_t*>(workspace + index * copy_size());
        for (int64_t row = rows.begin; row < rows.end; row += chunk_) {
          const Range chunk{row, std::min(row + chunk_, rows.end)};
          copy_image(c_, geometry_, schedule_.parts, call.image, chunk.begin * kBlockRows,
                     chunk.end * kBlockRows, pitch_, copy);
          multiply(call, chunk, columns, copy - chunk.begin * kBlockRows * row_elements());
        }
      } else {
        auto* copy = reinterpret_cast<uint16_t*>(workspace);
        const Range positions = share(geometry_.positions, index, team);
        copy_image(c_, geometry_, schedule_.parts, call.image, positions.begin, positions.end,
                   pitch_, copy + positions.begin * row_elements());
#pragma omp barrier
        multiply(call, rows, columns, copy);
      }
    }
    return {};
  }

 private:
  struct Call {
    const float* image;
    float* out;
    std::vector<const float*> tensors;  ///< of the steps
  };

  int64_t row_elements() const { return schedule_.parts * kTileDepth; }
  int64_t row_bytes() const { return row_elements() * 2; }
  int64_t copy_size() const { return copy_bytes(c_, pitch_, schedule_.parts); }
  /// `copy` is where position 0 lies, or would.
  void multiply(const Call& call, Range rows, Range columns, const uint16_t* copy) const {
    const TileScope scope;
    if (schedule_.weights_outer) {
      for (int64_t column = columns.begin; column < columns.end; ++column)
        for (int64_t row = rows.begin; row < rows.end; ++row) compute(call, row, column, copy);
    } else {
      for (int64_t row = rows.begin; row < rows.end; ++row)
        for (int64_t column = columns.begin; column < columns.end; ++column)
          compute(call, row, column, copy);
    }
  }

  void compute(const Call& call, int64_t row, int64_t column, const uint16_t* copy) const {
    alignas(64) float sums[kBlockRows * kBlockColumns];
    const int down = 2 * row + 1 < geometry_.tiles() ? 2 : 1;
    const int across = packed_.tiles_across(column);
    Block block{};
    for (int i = 0; i < down; ++i)
      block.a[i] =
          copy + geometry_.tile_positions[static_cast<size_t>(2 * row + i)] * row_elements();
    block.a_row_bytes = row_bytes();
    block.steps = steps_.data();
    block.step_count = static_cast<int64_t>(steps_.size());
    block.b = packed_.block(column);
    block.c = sums;
    multiply_block(block, down, across, schedule_.parts);
    const int64_t plane = c_.channels_last ? kTileColumns : c_.pixels_out() * kTileColumns;
    for (int j = 0; j < across; ++j) {
      const int64_t tile_column = 2 * column + j, first = tile_column * kTileColumns;
      for (int i = 0; i < down; ++i)
        finish_tile(c_.steps, sums + i * kTileRows * kBlockColumns + j * kTileColumns,
                    {&geometry_.tile_rows[static_cast<size_t>((2 * row + i) * kTileRows)],
                     tile_column * plane, first,
                     static_cast<int>(std::min(kTileColumns, c_.out_channels - first)),
                     !c_.channels_last, call.out, call.tensors});
    }
  }

  Contraction c_;
  Schedule schedule_;
  int threads_;
  Geometry geometry_;
  int64_t row_blocks_;
  bool private_copies_ = false;
  int64_t chunk_ = 0;  ///< row blocks of one copy
  int64_t pitch_ = 0;  ///< positions of one copy
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
  const int64_t rows = c.images * c.pixels_out();
  const bool shares_rows = rows >= threads * kBlockRows,
             shares_columns = threads > 1 && c.out_channels >= threads * kBlockColumns;
  std::vector<Schedule> list;
  if (shares_rows || !shares_columns) list.push_back({parts, false, bytes > kCached});
  if (shares_columns && (!shares_rows || bytes > kCached / 4)) list.push_back({parts, true, true});
  return list;
}

Result<std::unique_ptr<Kernel>> make_contraction_kernel(Contraction contraction,
                                                        const Schedule& schedule, int threads) {
  auto kernel = std::make_unique<ContractionKernel>(std::move(contraction), schedule, threads);
  TRY(kernel->prepare());
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace collage::amx
