#include "backend/contraction/kernels/contraction_kernel.h"

#include <omp.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <span>

#include "backend/contraction/kernels/geometry.h"
#include "backend/contraction/kernels/packed_operand.h"
#include "backend/contraction/kernels/saved_contraction.h"
#include "backend/contraction/kernels/sharing_kernel.h"
#include "backend/contraction/kernels/vectors.h"
#include "backend/contraction/kernels/work_queue.h"
#include "base/integers.h"

namespace collage::contraction {
namespace {

/// What runs never change.
class ContractionCode {
 public:
  ContractionCode(Contraction contraction, Schedule schedule, const MicroKernel& micro_kernel,
                  int threads)
      : c_(std::move(contraction)),
        schedule_(schedule),
        micro_kernel_(micro_kernel),
        threads_(threads),
        geometry_(plan_geometry(c_)),
        sources_(sources_of(c_, geometry_)),
        row_blocks_(ceil_div(geometry_.tiles(), 2)),
        shared_copy_(schedule_.by_columns && c_.taps.count() > 1),
        chunk_(shared_copy_ ? row_blocks_ : chunk_rows()),
        window_(widest_window(chunk_)) {}

  /// With the weights of each branch.
  Status prepare(std::vector<PackedOperand> weights) {
    packed_ = std::move(weights);
    for (size_t b = 0; b < packed_.size(); ++b) {
      for (int64_t block = 0; block < packed_[b].column_blocks(); ++block)
        for (size_t pass = 0; pass < geometry_.passes.size(); ++pass)
          columns_.push_back({b, block, pass});
      std::vector<std::vector<int32_t>>& rows = tile_rows_.emplace_back();
      for (const PassGeometry& pass : geometry_.passes)
        rows.push_back(row_offsets(c_, pass, c_.branches[b].out_channels));
    }
    // A thread's share of the columns is one of each branch: what reads q, k and v next has a head
    // of each in one core's cache.
    std::stable_sort(columns_.begin(), columns_.end(), [&](const Column& a, const Column& b) {
      return (2 * a.block + 1) * packed_[b.branch].column_blocks() <
             (2 * b.block + 1) * packed_[a.branch].column_blocks();
    });
    if (copy_size() > std::numeric_limits<int32_t>::max())
      return unsupported("a copy of {} bytes", copy_size());
    for (const PassGeometry& pass : geometry_.passes) {
      std::vector<int32_t>& steps = steps_.emplace_back();
      for (int64_t block = 0; block < packed_[0].depth_count(); ++block)
        for (const TapReach& tap : pass.taps)
          steps.push_back(static_cast<int32_t>((block * pitch() + tap.phase * window_ + tap.ahead) *
                                               row_elements() * 2));
    }
    return {};
  }

  int threads() const { return threads_; }
  size_t workspace_bytes() const {
    return static_cast<size_t>((shared_copy_ ? 1 : threads_) * copy_size());
  }
  size_t constant_bytes() const {
    size_t bytes = 0;
    for (const PackedOperand& packed : packed_) bytes += packed.bytes();
    return bytes;
  }

  SavedKernel save() const {
    return save_contraction(micro_kernel_.loader(), c_, schedule_, packed_);
  }

  /// `queue` has columns or chunks.
  Status run(const KernelArgs& args, WorkQueue& queue) const {
    Call call;
    for (const Source& source : sources_)
      call.images.push_back(static_cast<const float*>(args.inputs[source.image.data]));
    for (size_t b = 0; b < c_.branches.size(); ++b) {
      BranchCall& branch = call.branches.emplace_back();
      branch.out = static_cast<float*>(args.outputs[b]);
      for (int param : c_.branches[b].step_params)
        branch.tensors.push_back(param < 0 ? nullptr
                                           : static_cast<const float*>(args.inputs[param]));
    }
    auto* workspace = static_cast<char*>(args.workspace);
    const Range all_columns{0, static_cast<int64_t>(columns_.size())};
    queue.reset(schedule_.by_columns ? all_columns.end * row_parts() : chunks());
#pragma omp parallel num_threads(threads_)
    {
      const int index = omp_get_thread_num(), team = omp_get_num_threads();
      if (shared_copy_) {
        auto* copy = reinterpret_cast<uint16_t*>(workspace);
        const Part part = part_of_copy(index, team);
        copy_part(call, position(0), part, copy);
#pragma omp barrier
        const Range all_rows{0, row_blocks_};
        while (const std::optional<int64_t> piece = queue.next(index)) {
          const int64_t column = *piece / row_parts(), part_of_rows = *piece % row_parts();
          multiply(call, share(row_blocks_, part_of_rows, row_parts()), {column, column + 1},
                   {copy, all_rows});
        }
      } else {
        auto* copy = reinterpret_cast<uint16_t*>(workspace + index * copy_size());
        const auto multiply_chunk = [&](int64_t piece, Range columns) {
          const Range chunk{piece * chunk_, std::min((piece + 1) * chunk_, row_blocks_)};
          const Range w = window(chunk);
          const Part part{{0, w.end - w.begin}, {0, depth_blocks(c_)}};
          copy_part(call, w.begin, part, copy);
          multiply(call, chunk, columns, {copy, chunk});
        };
        if (schedule_.by_columns) {  // each thread copies all of the image
          const Range own = share(all_columns.end, index, team);
          for (int64_t piece = 0; piece < chunks(); ++piece) multiply_chunk(piece, own);
        } else {
          while (const std::optional<int64_t> piece = queue.next(index))
            multiply_chunk(*piece, all_columns);
        }
      }
    }
    return {};
  }

 private:
  struct BranchCall {
    float* out;
    std::vector<const float*> tensors;  ///< of the steps
  };
  struct Call {
    std::vector<const float*> images;
    std::vector<BranchCall> branches;
  };
  /// A copy, and the blocks of rows it is for.
  struct Copy {
    const uint16_t* at;
    Range rows;
  };
  /// Of a copy: positions, counted from its first, and blocks of 32 channels.
  struct Part {
    Range positions, blocks;
  };
  /// An image, and which blocks of 32 channels of a copy it gives.
  struct Source {
    Image image;
    Geometry geometry;
    Range blocks;
  };
  struct Column {
    size_t branch;
    int64_t block;  ///< of the branch's columns
    size_t pass;
  };

  int64_t phases() const { return static_cast<int64_t>(geometry_.phases.size()); }
  int64_t row_elements() const { return schedule_.parts.left * kTileDepth; }
  /// Positions of one channel block of a copy.
  int64_t pitch() const { return phases() * window_; }
  int64_t copy_size() const { return copy_bytes(c_, pitch(), schedule_.parts.left); }

  int64_t position(int64_t tile) const {
    return geometry_.tile_positions[static_cast<size_t>(tile)];
  }
  /// The positions of a phase that the blocks of rows read.
  Range window(Range rows) const {
    const int64_t last = std::min(rows.end * 2, geometry_.tiles()) - 1;
    return {position(rows.begin * 2), position(last) + kTileRows + geometry_.furthest};
  }
  int64_t widest_window(int64_t row_blocks) const {
    int64_t widest = 0;
    for (int64_t row = 0; row < row_blocks_; ++row) {
      const Range w = window({row, std::min(row + row_blocks, row_blocks_)});
      widest = std::max(widest, w.end - w.begin);
    }
    return widest;
  }
  /// Into how many parts the rows of a block of columns are cut, for threads to share these out:
  /// the last block takes a while.
  int64_t row_parts() const { return shared_copy_ && threads_ > 1 && row_blocks_ > 1 ? 2 : 1; }
  int64_t chunks() const { return ceil_div(row_blocks_, chunk_); }
  /// How many blocks of rows are copied at once: as many as a core's own caches hold beside the
  /// weights, but the neighbours that are copied along should be few. Where rows are shared out,
  /// equally many chunks a thread.
  int64_t chunk_rows() const {
    const int64_t bytes = schedule_.weights_outer ? 1 << 20
                          : c_.taps.count() == 1  ? 256 << 10
                                                  : 512 << 10;
    const int64_t positions = bytes / copy_bytes(c_, phases(), schedule_.parts.left);
    const int64_t block = ceil_div(geometry_.phase_positions, row_blocks_);
    const int64_t rows = std::max(positions - geometry_.furthest, 3 * geometry_.furthest) / block;
    const int64_t most = std::clamp<int64_t>(rows, 1, row_blocks_);
    if (schedule_.by_columns) return most;
    // Some for others to take, unless each reads all weights from memory again.
    const bool again = weight_bytes(c_, schedule_.parts) > kCachedWeights;
    const int64_t pieces = threads_ == 1 || again ? 1 : 3;
    const int64_t own = ceil_div(row_blocks_, int64_t{threads_});
    return ceil_div(own, std::max(ceil_div(own, most), pieces));
  }

  /// What a thread copies of the whole image. Where the kernel before shares out columns too, a
  /// thread finds the channels in its own cache that it wrote there.
  Part part_of_copy(int64_t index, int64_t team) const {
    const Range positions{0, window_}, blocks{0, depth_blocks(c_)};
    if (blocks.end < 4 * team) return {share(window_, index, team), blocks};
    return {positions, share(blocks.end, index, team)};
  }
  /// `first` is the geometry of the result and of the first image.
  static std::vector<Source> sources_of(const Contraction& c, const Geometry& first) {
    std::vector<Source> sources;
    for (int64_t begin = 0; Image & image : c.all_images()) {
      const Range blocks{begin, begin + depth_blocks(image.extents)};
      Geometry geometry = begin == 0 ? first : plan_geometry(image.extents);
      geometry.tile_positions = {};  // of the result alone
      geometry.passes = {};
      sources.push_back({std::move(image), std::move(geometry), blocks});
      begin = blocks.end;
    }
    return sources;
  }
  /// Calls visit(source, phase, stretch) for what a part of what begins at position `first` is.
  template <typename Visit>
  void for_each_stretch(const Call& call, int64_t first, const Part& part, Visit&& visit) const {
    for (size_t i = 0; i < sources_.size(); ++i) {
      const Range& all = sources_[i].blocks;
      const Range blocks{std::max(part.blocks.begin, all.begin) - all.begin,
                         std::min(part.blocks.end, all.end) - all.begin};
      for (int64_t phase = 0; phase < phases() && blocks.begin < blocks.end; ++phase)
        visit(sources_[i], phase,
              Stretch{call.images[i], static_cast<size_t>(phase), first + part.positions.begin,
                      first + part.positions.end, blocks});
    }
  }
  /// Copies a part of what begins at position `first` to its place in a copy.
  void copy_part(const Call& call, int64_t first, const Part& part, uint16_t* copy) const {
    for_each_stretch(call, first, part,
                     [&](const Source& source, int64_t phase, const Stretch& stretch) {
                       const int64_t position =
                           source.blocks.begin * pitch() + phase * window_ + part.positions.begin;
                       copy_image(source.image.extents, source.geometry, schedule_.parts.left,
                                  stretch, pitch(), copy + position * row_elements());
                     });
  }

  /// `copy` holds these rows.
  void multiply(const Call& call, Range rows, Range columns, const Copy& copy) const {
    const auto products = [&] {
      if (schedule_.weights_outer) {
        for (int64_t column = columns.begin; column < columns.end; ++column)
          for (int64_t row = rows.begin; row < rows.end; ++row) compute(call, row, column, copy);
      } else {
        for (int64_t row = rows.begin; row < rows.end; ++row)
          for (int64_t column = columns.begin; column < columns.end; ++column)
            compute(call, row, column, copy);
      }
    };
    micro_kernel_.with_registers(std::ref(products));  // a reference takes no memory
  }

  void compute(const Call& call, int64_t row, int64_t column, const Copy& copy) const {
    const Range rows = copy.rows;
    alignas(64) float sums[kBlockRows * kBlockColumns];
    const Column& where = columns_[static_cast<size_t>(column)];
    const size_t b = where.branch, pass = where.pass;  // lambdas of clang 14 take no bindings
    const int64_t column_block = where.block;
    const Branch& branch = c_.branches[b];
    const PackedOperand& packed = packed_[b];
    const int across = packed.tiles_across(column_block);
    const int down = 2 * row + 1 < geometry_.tiles() ? 2 : 1;
    const uint16_t* depth = copy.at + packed.first_depth(column_block) * pitch() * row_elements();
    const std::vector<int32_t>& steps = steps_[pass];
    // Filled in place: a copy would read pairs of pointers at once that are written one by one, and
    // wait until all that was written before has reached the cache.
    Block block{};
    for (int i = 0; i < down; ++i)
      block.a[i] = depth + (position(2 * row + i) - position(2 * rows.begin)) * row_elements();
    block.a_row_bytes = row_elements() * 2;
    block.steps = steps.data();
    block.step_count = static_cast<int64_t>(steps.size());
    block.b = packed.block(column_block, pass);
    block.c = sums;
    fetch_next(block, row - rows.begin, rows.end - rows.begin, column);
    const int64_t plane = c_.channels_last ? kTileColumns : c_.pixels_out() * kTileColumns;
    const BranchCall& branch_call = call.branches[b];
    const Destination to{branch_call.out, branch_call.tensors, plane, branch.out_channels,
                         !c_.channels_last};
    TilePlace places[2][2];  // down, across
    for (int i = 0; i < down; ++i)
      for (int j = 0; j < across; ++j) {
        places[i][j] =
            tile_place(to, rows_of_tile(tile_rows_[b][pass], 2 * row + i), 2 * column_block + j);
      }
    micro_kernel_.multiply(block, schedule_.parts, down, across);
    for (int j = 0; j < across; ++j)
      for (int i = 0; i < down; ++i)
        finish_tile(branch.steps, sums + i * kTileRows * kBlockColumns + j * kTileColumns,
                    places[i][j]);
  }

  static std::span<const int32_t> rows_of_tile(const std::vector<int32_t>& rows, int64_t tile) {
    return std::span(rows).subspan(static_cast<size_t>(tile * kTileRows), kTileRows);
  }

  /// The rows of one block of columns fetch the weights of the next one between them. Of a product
  /// these are few enough for the processor to foresee.
  void fetch_next(Block& block, int64_t row, int64_t rows, int64_t column) const {
    const bool foreseen = c_.taps.count() == 1;
    if (!schedule_.weights_outer || foreseen || block.step_count == 0) return;
    if (column + 1 == static_cast<int64_t>(columns_.size())) return;
    const auto [b, next_block, pass] = columns_[static_cast<size_t>(column + 1)];
    const int64_t step_lines = packed_[b].tiles_across(next_block) * schedule_.parts.right * 16;
    block.next_lines =
        ceil_div(static_cast<int64_t>(steps_[pass].size()) * step_lines, rows * block.step_count);
    block.next = reinterpret_cast<const char*>(packed_[b].block(next_block, pass)) +
                 row * block.step_count * block.next_lines * 64;
  }

  Contraction c_;
  Schedule schedule_;
  const MicroKernel& micro_kernel_;
  int threads_;
  Geometry geometry_;
  std::vector<Source> sources_;
  int64_t row_blocks_;
  /// All threads read one copy of the whole image; otherwise each copies what it needs of it, some
  /// rows at a time.
  bool shared_copy_;
  int64_t chunk_;                                             ///< blocks of rows of one copy
  int64_t window_;                                            ///< positions of one phase in a copy
  std::vector<PackedOperand> packed_;                         ///< of each branch
  std::vector<std::vector<std::vector<int32_t>>> tile_rows_;  ///< of each branch's passes
  std::vector<Column> columns_;              ///< all branches' blocks of columns, in each pass
  std::vector<std::vector<int32_t>> steps_;  ///< of each pass: bytes from a tile's first row
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_contraction_kernel(Contraction contraction,
                                                        const Schedule& schedule,
                                                        const MicroKernel& micro_kernel,
                                                        int threads) {
  std::vector<PackedOperand> weights;
  for (Branch& branch : contraction.branches) {
    weights.push_back(TRY(PackedOperand::create(contraction, branch, schedule.parts)));
    branch.weights = {};  // packed
  }
  return make_contraction_kernel(std::move(contraction), schedule, micro_kernel, threads,
                                 std::move(weights));
}

Result<std::unique_ptr<Kernel>> make_contraction_kernel(Contraction contraction,
                                                        const Schedule& schedule,
                                                        const MicroKernel& micro_kernel,
                                                        int threads,
                                                        std::vector<PackedOperand> weights) {
  auto code =
      std::make_shared<ContractionCode>(std::move(contraction), schedule, micro_kernel, threads);
  TRY(code->prepare(std::move(weights)));
  return std::unique_ptr<Kernel>(std::make_unique<SharingKernel<ContractionCode>>(std::move(code)));
}

}  // namespace collage::contraction
