#include "kernels/contraction/winograd_kernel.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/integers.h"
#include "kernels/contraction/geometry.h"
#include "kernels/contraction/integers.h"
#include "kernels/contraction/packed_operand.h"
#include "kernels/contraction/saved_contraction.h"
#include "kernels/contraction/shares.h"
#include "kernels/contraction/sharing_kernel.h"
#include "kernels/contraction/winograd.h"

namespace collage::contraction {
namespace {

using winograd::kNumbers;
using winograd::Numbers;

constexpr int64_t kMostPatches = 2 * kMostDotRows;  // of a block
constexpr int64_t kChannels = 16;                   // of a block of channels in memory

/// Rows of a block's tiles, for so many patches: of one tile or of two.
int64_t tile_rows(int64_t patches) {
  const int64_t rows = patches > kMostDotRows ? ceil_div(patches, int64_t{2}) : patches;
  return std::max<int64_t>(rows, kFewestDotRows);
}
int64_t tiles_down(int64_t patches) { return patches > kMostDotRows ? 2 : 1; }

/// What so many patches in blocks of `block` cost, in rows: a block costs what one does, beside its
/// own.
int64_t cost_of(int64_t patches, int64_t block) {
  const auto one = [](int64_t count) { return tiles_down(count) * tile_rows(count) + 1; };
  const int64_t rest = patches % block;
  return patches / block * one(block) + (rest > 0 ? one(rest) : 0);
}
int64_t best_block(int64_t patches) {
  int64_t best = kMostPatches;
  for (int64_t block = best - 1; block > kMostDotRows; --block)
    if (cost_of(patches, block) < cost_of(patches, best)) best = block;
  return best;
}

/// What runs never change.
class WinogradCode {
 public:
  WinogradCode(Contraction c, const Schedule& schedule, const MicroKernel& micro_kernel,
               int threads)
      : c_(std::move(c)),
        schedule_(schedule),
        micro_kernel_(micro_kernel),
        by_columns_(schedule.by_columns),
        threads_(threads),
        form_(*schedule.winograd),
        places_(winograd::places_of(form_)),
        patches_(winograd::plan_patches(c_, form_)),
        chunk_(by_columns_ ? patches_.count : chunk_patches()),
        block_(best_block(chunk_)),
        window_(chunk_ + kMostPatches),
        parts_(by_columns_ && threads > 1 && chunk_ > block_ ? 2 : 1) {
    for (int64_t depth = 0; depth < depth_blocks(c_); ++depth)
      steps_.push_back(static_cast<int32_t>(depth * window_ * kTileDepth * 2));
  }

  Status check() const {
    if (copy_size() <= std::numeric_limits<int32_t>::max()) return {};
    return unsupported("a copy of {} bytes", copy_size());
  }
  Status pack() {
    const winograd::Transformed places = winograd::transformed(c_, form_);
    branch().weights = {};
    take(TRY(PackedOperand::create(places.contraction, places.contraction.branches[0], kNumbers)),
         places.units);
    return {};
  }
  void take(PackedOperand packed, const Numbers& units) {
    packed_.emplace(std::move(packed));
    weight_units_ = units;
  }
  SavedKernel save() const {
    return save_contraction(micro_kernel_.loader(), c_, schedule_, {&*packed_, 1}, weight_units_);
  }

  int threads() const { return threads_; }
  size_t workspace_bytes() const {
    return static_cast<size_t>((by_columns_ ? 1 : threads_) * copy_size());
  }
  size_t constant_bytes() const { return packed_->bytes(); }

  /// `shares` are of blocks of columns in parts, or of chunks.
  Status run(const KernelArgs& args, Shares& shares) const {
    Call call{
        static_cast<const float*>(args.inputs[c_.data]), static_cast<float*>(args.outputs[0]), {}};
    for (int param : branch().step_params)
      call.tensors.push_back(param < 0 ? nullptr : static_cast<const float*>(args.inputs[param]));
    auto* workspace = static_cast<char*>(args.workspace);
    std::vector<Numbers> largests(static_cast<size_t>(threads_), Numbers{});
    const int64_t columns = packed_->column_blocks(), count = patches_.count;
    shares.deal(by_columns_ ? columns * parts_ : ceil_div(count, chunk_));
#pragma omp parallel num_threads(threads_)
    {
      const int index = omp_get_thread_num(), team = omp_get_num_threads();
      if (by_columns_) {
        auto* copy = reinterpret_cast<uint16_t*>(workspace);
        const Part own = part_of_copy(index, team);
        raise_largest(call, own, largests[static_cast<size_t>(index)]);
#pragma omp barrier
        Numbers largest{};
        for (int i = 0; i < team; ++i)
          for (size_t p = 0; p < largest.size(); ++p)
            largest[p] = larger_or_nan(largest[p], largests[static_cast<size_t>(i)][p]);
        const Units units(largest, weight_units_);
        copy_patches(call, own, units, copy + own.patches.begin * kTileDepth);
#pragma omp barrier
        while (const std::optional<int64_t> piece = shares.next(index)) {
          const int64_t column = *piece / parts_, part = *piece % parts_;
          const Range blocks = share(ceil_div(count, block_), part, parts_);
          multiply(call, {copy, {0, count}},
                   {blocks.begin * block_, std::min(blocks.end * block_, count)},
                   {column, column + 1}, units);
        }
      } else {
        auto* copy = reinterpret_cast<uint16_t*>(workspace + index * copy_size());
        while (const std::optional<int64_t> piece = shares.next(index)) {
          const Range patches{*piece * chunk_, std::min((*piece + 1) * chunk_, count)};
          const Part part{patches, {0, depth_blocks(c_)}};
          Numbers largest{};
          raise_largest(call, part, largest);
          const Units units(largest, weight_units_);
          copy_patches(call, part, units, copy);
          multiply(call, {copy, patches}, patches, {0, columns}, units);
        }
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
  /// Of each place what numbers are multiplied by when they become integers, and what undoes it
  /// and their weights' unit. What is beyond float32's range makes all results NaN.
  struct Units {
    Numbers there, back;

    Units(const Numbers& largest, const Numbers& weights) {
      float most = 0;
      for (size_t p = 0; p < largest.size(); ++p) {
        const ImageUnit unit = image_unit(largest[p]);
        there[p] = unit.there;
        back[p] = unit.back * weights[p];
        most = larger_or_nan(most, largest[p]);
      }
      if (!std::isfinite(most)) back.fill(image_unit(most).back);
    }
  };

  /// Of a copy: patches, and blocks of 32 channels.
  struct Part {
    Range patches, blocks;
  };

  Branch& branch() { return c_.branches[0]; }
  const Branch& branch() const { return c_.branches[0]; }
  /// Of a copy: elements from place to place. An odd number of lines, so that what lies at the same
  /// line of all places does not meet in the same sets of a cache.
  int64_t place_elements() const { return (depth_blocks(c_) * window_ | 1) * kTileDepth; }
  int64_t copy_size() const { return places_ * place_elements() * 2; }

  /// How many patches are copied at once where these are shared out: what a core's own cache holds
  /// beside weights, equally many for each thread, and some pieces for others to take as long as
  /// these cost next to nothing.
  int64_t chunk_patches() const {
    constexpr int64_t kCopy = 512 << 10;                // bytes
    const int64_t most_pieces = threads_ == 1 ? 1 : 4;  // of a thread
    const int64_t bytes = places_ * depth_blocks(c_) * kTileDepth * 2;
    int64_t chosen = 0, least = 0;
    for (int64_t pieces = 1; pieces <= most_pieces || chosen == 0; ++pieces) {
      const int64_t count = threads_ * pieces, chunk = ceil_div(patches_.count, count);
      if (chunk * bytes > kCopy && chunk > kMostPatches) continue;
      const int64_t cost = count * cost_of(chunk, best_block(chunk));
      if (chosen == 0 || cost < least) least = cost;
      if (chosen == 0 || 100 * cost <= 102 * least) chosen = chunk;
    }
    return chosen;
  }

  /// What a thread copies of all patches: as ContractionCode::part_of_copy.
  Part part_of_copy(int64_t index, int64_t team) const {
    const Range patches{0, patches_.count}, blocks{0, depth_blocks(c_)};
    if (blocks.end < 4 * team) return {share(patches.end, index, team), blocks};
    return {patches, share(blocks.end, index, team)};
  }

  /// Calls visit(channels of a block of 16, which one).
  template <typename Visit>
  void for_each_block(const Call& call, const Part& part, Visit&& visit) const {
    const int64_t end = std::min(2 * part.blocks.end, ceil_div(c_.in_channels, kChannels));
    const int32_t* sources = patches_.sources.data() + part.patches.begin * places_;
    for (int64_t block = 2 * part.blocks.begin; block < end; ++block)
      visit(winograd::Channels{call.image + block * c_.pixels_in() * kChannels, sources,
                               part.patches.end - part.patches.begin},
            block);
  }
  void raise_largest(const Call& call, const Part& part, Numbers& largest) const {
    for_each_block(call, part, [&](const winograd::Channels& channels, int64_t) {
      winograd::raise_largest(form_, channels, largest);
    });
  }
  void copy_patches(const Call& call, const Part& part, const Units& units, uint16_t* copy) const {
    const auto at = [&](int64_t block) {
      return copy + block / 2 * window_ * kTileDepth + block % 2 * kChannels;
    };
    for_each_block(call, part, [&](const winograd::Channels& channels, int64_t block) {
      winograd::copy_patches(form_, channels, units.there, place_elements() * 2, at(block));
    });
    const int64_t blocks = ceil_div(c_.in_channels, kChannels);
    if (blocks % 2 == 0 || 2 * part.blocks.end < blocks) return;
    for (int64_t place = 0; place < places_; ++place)  // the rest of the last lines
      for (int64_t p = 0; p < part.patches.end - part.patches.begin; ++p)
        std::fill_n(at(blocks) + place * place_elements() + p * kTileDepth, kChannels, uint16_t{0});
  }

  /// A copy, and the patches in it.
  struct Copy {
    const uint16_t* at;
    Range patches;
  };
  void multiply(const Call& call, const Copy& copy, Range patches, Range columns,
                const Units& units) const {
    const auto products = [&] {
      for (int64_t column = columns.begin; column < columns.end; ++column)
        for (int64_t p = patches.begin; p < patches.end; p += block_)
          compute(call, copy, {p, std::min(p + block_, patches.end)}, column, units);
    };
    micro_kernel_.with_registers(std::ref(products));  // a reference takes no memory
  }

  void compute(const Call& call, const Copy& copy, Range block, int64_t column,
               const Units& units) const {
    alignas(64) float sums[winograd::kMostPlaces * kMostPatches * kBlockColumns];
    alignas(64) float results[winograd::kMostResults * kMostPatches * kBlockColumns];
    const auto pixels = static_cast<size_t>(winograd::results_of(form_));
    const int64_t count = block.end - block.begin, rows = tile_rows(count),
                  down = tiles_down(count), all_rows = down * rows;
    const int64_t ahead = block.begin - copy.patches.begin;
    const int across = packed_->tiles_across(column);
    const Destination to{call.out, call.tensors, c_.pixels_out() * kTileColumns,
                         branch().out_channels, true};
    TilePlace places[winograd::kMostResults][2];
    for (size_t r = 0; r < pixels; ++r)
      for (int j = 0; j < across; ++j) {
        places[r][j] =
            tile_place(to,
                       std::span(patches_.results[r])
                           .subspan(static_cast<size_t>(block.begin), static_cast<size_t>(count)),
                       2 * column + j);
        fetch_tile(places[r][j]);
      }
    // The weights of the next block of columns are fetched between those of this one.
    const auto steps = static_cast<int64_t>(steps_.size());
    const int64_t blocks = ceil_div(copy.patches.end - copy.patches.begin, block_);
    const int64_t lines =
        column + 1 < packed_->column_blocks()
            ? ceil_div(int64_t{packed_->tiles_across(column + 1)} * kTileRows, blocks)
            : 0;
    const char* next = lines > 0 ? reinterpret_cast<const char*>(packed_->block(column + 1, 0)) +
                                       ahead / block_ * places_ * steps * lines * 64
                                 : nullptr;
    for (int64_t place = 0; place < places_; ++place, next += steps * lines * 64) {
      const uint16_t* rows_of_place = copy.at + place * place_elements() + ahead * kTileDepth;
      Block product{};
      product.a[0] = rows_of_place;
      product.a[1] = rows_of_place + rows * kTileDepth;
      product.steps = steps_.data();
      product.step_count = steps;
      product.b = packed_->block(column, static_cast<size_t>(place));
      product.c = sums + place * all_rows * kBlockColumns;
      product.next = next;
      product.next_lines = lines;
      product.run = packed_->run();
      product.factors = packed_->factors(column);
      product.factor = units.back[static_cast<size_t>(place)];
      micro_kernel_.multiply(product, kNumbers, static_cast<int>(rows), static_cast<int>(down),
                             across);
    }
    winograd::transform_back(form_, sums, all_rows, results);
    for (size_t r = 0; r < pixels; ++r)
      for (int j = 0; j < across; ++j)
        finish_tile(branch().steps,
                    results + static_cast<int64_t>(r) * all_rows * kBlockColumns + j * kTileColumns,
                    places[r][j]);
  }

  Contraction c_;
  Schedule schedule_;
  const MicroKernel& micro_kernel_;
  bool by_columns_;
  int threads_;
  winograd::Form form_;
  int64_t places_;
  winograd::Patches patches_;
  int64_t chunk_;   ///< patches that are copied at once
  int64_t block_;   ///< and computed
  int64_t window_;  ///< that a copy has room for: blocks compute more rows than there are patches
  /// Into how many parts the patches of a block of columns are cut, for threads to share these out:
  /// the last block takes a while.
  int64_t parts_;
  std::vector<int32_t> steps_;  ///< bytes to what each block of 32 channels reads
  std::optional<PackedOperand> packed_;
  Numbers weight_units_{};  ///< of each place
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_winograd_kernel(Contraction c, const Schedule& schedule,
                                                     const MicroKernel& micro_kernel, int threads) {
  auto code = std::make_shared<WinogradCode>(std::move(c), schedule, micro_kernel, threads);
  TRY(code->check());
  TRY(code->pack());
  return std::unique_ptr<Kernel>(std::make_unique<SharingKernel<WinogradCode>>(std::move(code)));
}

Result<std::unique_ptr<Kernel>> make_winograd_kernel(Contraction c, const Schedule& schedule,
                                                     const MicroKernel& micro_kernel, int threads,
                                                     PackedOperand packed, const Numbers& units) {
  auto code = std::make_shared<WinogradCode>(std::move(c), schedule, micro_kernel, threads);
  TRY(code->check());
  code->take(std::move(packed), units);
  return std::unique_ptr<Kernel>(std::make_unique<SharingKernel<WinogradCode>>(std::move(code)));
}

}  // namespace collage::contraction
