#include "backend/contraction/kernels/saved_contraction.h"

#include <algorithm>
#include <limits>

#include "backend/contraction/kernels/contraction_kernel.h"
#include "backend/contraction/kernels/geometry.h"
#include "base/integers.h"
#include "runtime/saved_fields.h"

namespace collage::contraction {
namespace {

using nlohmann::json;

// What sums and products of these numbers stay in 64 bits for, and loops over them end.
constexpr int64_t kMostPixels = int64_t{1} << 31, kMostChannels = 1 << 24, kMostStride = 1 << 20;
constexpr int64_t kMostReach = 1 << 20, kMostTaps = 1 << 16, kMostElements = int64_t{1} << 46;
constexpr int64_t kMostPositions = int64_t{1} << 34;  // times blocks of 32 channels
constexpr size_t kMostSteps = 64, kMostBranches = 1 << 12;
constexpr int64_t kMostInputs = 1 << 20;
constexpr int64_t kMostColumns = 1 << 24;  // tiles of columns, of all branches in all passes

json save_taps(const Taps& taps) {
  json passes = json::array();
  for (const Pass& pass : taps.passes) {
    json list = json::array();
    for (const Tap& tap : pass.taps)
      list.push_back({{"offset", tap.offset}, {"elements", tap.elements}});
    passes.push_back({{"remainder", pass.remainder}, {"taps", std::move(list)}});
  }
  return {{"up", taps.up}, {"stride", taps.stride}, {"passes", std::move(passes)}};
}

json save_image(size_t input, const Extents& c) {
  return {{"input", input},
          {"images", c.images},
          {"in_channels", c.in_channels},
          {"groups", c.groups},
          {"in", c.in},
          {"out", c.out},
          {"taps", save_taps(c.taps)},
          {"channels_last", c.channels_last}};
}

json save_branch(const Branch& branch) {
  json steps = json::array();
  for (size_t i = 0; i < branch.steps.size(); ++i) {
    const Step& step = branch.steps[i];
    const float numbers[] = {step.low, step.high, step.slope};
    steps.push_back({{"kind", static_cast<int>(step.kind)},
                     {"columns", float_bits(step.columns)},
                     {"numbers", float_bits(numbers)},
                     {"input", branch.step_params[i]}});
  }
  return {{"out_channels", branch.out_channels}, {"steps", std::move(steps)}};
}

json save_schedule(const Schedule& schedule) {
  return {{"left", schedule.parts.left},
          {"right", schedule.parts.right},
          {"by_columns", schedule.by_columns},
          {"weights_outer", schedule.weights_outer}};
}

Result<Spatial> spatial_from(const JsonFields& fields, const char* name, int64_t low,
                             int64_t high) {
  const std::vector<int64_t> numbers = TRY(integers_from(fields, name, low, high, 3));
  if (numbers.size() != 3) return bad_model("'{}' of {} dimensions", name, numbers.size());
  return Spatial{numbers[0], numbers[1], numbers[2]};
}

Result<Taps> taps_from(const JsonFields& fields) {
  Taps taps;
  taps.passes.clear();
  taps.up = TRY(spatial_from(fields, "up", 1, kMostStride));
  taps.stride = TRY(spatial_from(fields, "stride", 1, kMostStride));
  for (const json& entry : *TRY(fields.array("passes"))) {
    const JsonFields own(entry);
    Pass& pass = taps.passes.emplace_back();
    pass.remainder = TRY(spatial_from(own, "remainder", 0, kMostStride));
    for (size_t d = 0; d < 3; ++d)
      if (pass.remainder[d] >= taps.up[d]) return bad_model("a pass of no pixel");
    for (const json& one : *TRY(own.array("taps"))) {
      const JsonFields of_tap(one);
      Tap& tap = pass.taps.emplace_back();
      tap.offset = TRY(spatial_from(of_tap, "offset", -kMostReach, kMostReach));
      tap.elements = TRY(integers_from(of_tap, "elements", 0, kMostPixels, size_t{kMostTaps}));
    }
  }
  if (static_cast<int64_t>(taps.passes.size()) != volume(taps.up))
    return bad_model("{} passes", taps.passes.size());
  if (taps.count() < 1 || taps.count() > kMostTaps) return bad_model("{} taps", taps.count());
  return taps;
}

Status at_most(const Shape& factors, int64_t most) {
  if (TRY(checked_num_elements(factors)) <= most) return {};
  return bad_model("tensors of {} elements", shape_to_string(factors));
}

/// That nothing which is computed of it is too large.
Status check_extents(const Extents& c) {
  if (c.in_channels % c.groups != 0)
    return bad_model("{} channels in {} groups", c.in_channels, c.groups);
  TRY(at_most({c.images, c.in[0], c.in[1], c.in[2], round_up(c.in_channels, kTileColumns)},
              kMostElements));
  Shape positions = {depth_blocks(c), c.images};
  const Spatial results = c.pass_extent();
  for (size_t d = 0; d < 3; ++d) {
    int64_t low = kMostReach, high = -kMostReach;
    for (const Pass& pass : c.taps.passes)
      for (const Tap& tap : pass.taps) {
        low = std::min(low, tap.offset[d]);
        high = std::max(high, tap.offset[d]);
      }
    positions.push_back(results[d] + high - low);
  }
  return at_most(positions, kMostPositions);
}

Result<Image> image_from(const JsonFields& fields) {
  Image image;
  image.data = static_cast<size_t>(TRY(fields.integer("input", 0, kMostInputs)));
  Extents& c = image.extents;
  c.images = TRY(fields.integer("images", 1, kMostPixels));
  c.in_channels = TRY(fields.integer("in_channels", 1, kMostChannels));
  c.groups = TRY(fields.integer("groups", 1, kMostChannels));
  c.in = TRY(spatial_from(fields, "in", 1, kMostPixels));
  c.out = TRY(spatial_from(fields, "out", 1, kMostPixels));
  const json& taps = *TRY(fields.object("taps"));
  c.taps = TRY(taps_from(JsonFields(taps)));
  c.channels_last = TRY(fields.flag("channels_last"));
  TRY(check_extents(c));
  return image;
}

Result<Branch> branch_from(const JsonFields& fields, const Extents& c) {
  Branch branch;
  branch.out_channels = TRY(fields.integer("out_channels", 1, kMostChannels));
  if (branch.out_channels % c.groups != 0)
    return bad_model("{} results in {} groups", branch.out_channels, c.groups);
  const int64_t columns = round_up(branch.out_channels, kTileColumns);
  // Where rows of the result begin is kept in 32 bits.
  TRY(at_most({c.images, c.out[0], c.out[1], c.out[2], columns},
              std::numeric_limits<int32_t>::max()));
  const json& steps = *TRY(fields.array("steps"));
  if (steps.empty() || steps.size() > kMostSteps) return bad_model("{} steps", steps.size());
  for (const json& entry : steps) {
    const JsonFields own(entry);
    Step& step = branch.steps.emplace_back();
    step.kind = static_cast<Step::Kind>(
        TRY(own.integer("kind", 0, static_cast<int64_t>(Step::Kind::kTanh))));
    step.columns = TRY(floats_from(own, "columns", static_cast<size_t>(columns)));
    const bool all = static_cast<int64_t>(step.columns.size()) == columns;
    if (!all && (!step.columns.empty() || step.kind == Step::Kind::kScale))
      return bad_model("a step of {} columns", step.columns.size());
    const std::vector<float> numbers = TRY(floats_from(own, "numbers", 3));
    if (numbers.size() != 3) return bad_model("a step of {} numbers", numbers.size());
    step.low = numbers[0], step.high = numbers[1], step.slope = numbers[2];
    branch.step_params.push_back(static_cast<int>(TRY(own.integer("input", -1, kMostInputs))));
  }
  if (branch.steps.back().kind != Step::Kind::kLinear) return bad_model("steps without an end");
  return branch;
}

Result<Schedule> schedule_from(const JsonFields& fields) {
  Schedule schedule;
  schedule.parts.left = static_cast<int>(TRY(fields.integer("left", 1, 3)));
  schedule.parts.right = static_cast<int>(TRY(fields.integer("right", 1, 3)));
  schedule.by_columns = TRY(fields.flag("by_columns"));
  schedule.weights_outer = TRY(fields.flag("weights_outer"));
  return schedule;
}

/// Whether what remains of `c` without its second image, and that image, are 1x1 convolutions of
/// whole blocks of channels for the same pixels.
bool adds_up(const Contraction& c) {
  const auto adds = [](const Extents& e) {
    return !e.channels_last && e.groups == 1 && e.taps.passes.size() == 1 && e.taps.count() == 1 &&
           e.in_channels % kTileDepth == 0;
  };
  const Extents& other = c.addend->extents;
  return c.branches.size() == 1 && adds(c) && adds(other) && other.in_channels < c.in_channels &&
         other.images == c.images && other.out == c.out;
}

/// That what a kernel keeps of rows and columns of tiles is not too large.
Status check_tables(const Contraction& c) {
  const auto passes = static_cast<int64_t>(c.taps.passes.size());
  const auto branches = static_cast<int64_t>(c.branches.size());
  int64_t columns = 0;
  for (const Branch& branch : c.branches) columns += ceil_div(branch.out_channels, kTileColumns);
  TRY(at_most({passes, columns}, kMostColumns));
  // Of each row of a tile, of which each result may have one to itself: where it is in a result.
  const Spatial results = c.pass_extent();
  constexpr int64_t kBytes = kTileRows * int64_t{sizeof(int32_t)};
  return at_most({branches + 1, passes, c.images, results[0], results[1], results[2], kBytes},
                 most_bytes());
}

Status check_whole(const Contraction& c, const Schedule& schedule,
                   const MicroKernel& micro_kernel) {
  if (c.branches.empty() || c.branches.size() > kMostBranches ||
      (c.branches.size() > 1 && c.groups != 1))
    return bad_model("{} results", c.branches.size());
  if (c.addend && !adds_up(c)) return bad_model("a sum of two contractions that do not fit");
  if (!micro_kernel.multiplies(schedule.parts))
    return bad_model("products of numbers as {}", schedule.parts.name());
  return check_tables(c);
}

size_t tensor_bytes(const Extents& c, const Spatial& pixels, int64_t channels) {
  const int64_t all = c.channels_last ? channels : round_up(channels, kTileColumns);
  return static_cast<size_t>(c.images * volume(pixels) * all) * sizeof(float);
}

/// That the images, the results and what steps add to these are as large as their buffers.
Status check_buffers(const Contraction& c, const BufferSizes& buffers) {
  for (const Image& image : c.all_images())
    TRY(buffers.input_holds(
        image.data, tensor_bytes(image.extents, image.extents.in, image.extents.in_channels)));
  for (size_t b = 0; b < c.branches.size(); ++b) {
    const size_t bytes = tensor_bytes(c, c.out, c.branches[b].out_channels);
    TRY(buffers.output_holds(b, bytes));
    for (const int param : c.branches[b].step_params)
      if (param >= 0) TRY(buffers.input_holds(static_cast<size_t>(param), bytes));
  }
  return {};
}

}  // namespace

SavedKernel save_contraction(const char* loader, const Contraction& c, const Schedule& schedule,
                             std::span<const PackedOperand> weights) {
  SavedKernel saved;
  saved.loader = loader;
  json branches = json::array();
  for (size_t b = 0; b < weights.size(); ++b) {
    branches.push_back(save_branch(c.branches[b]));
    saved.constants.push_back(weights[b].memory());
  }
  json description = {{"schedule", save_schedule(schedule)},
                      {"image", save_image(c.data, c)},
                      {"branches", std::move(branches)}};
  if (c.addend) description["addend"] = save_image(c.addend->data, c.addend->extents);
  saved.description = description.dump();
  return saved;
}

Result<SavedContraction> read_saved_contraction(const SavedKernel& saved,
                                                const MicroKernel& micro_kernel) {
  const json description = TRY(description_object(saved.description));
  const JsonFields fields(description);
  SavedContraction read;
  const json& schedule = *TRY(fields.object("schedule"));
  read.schedule = TRY(schedule_from(JsonFields(schedule)));
  Contraction& c = read.contraction;
  const json& image = *TRY(fields.object("image"));
  Image first = TRY(image_from(JsonFields(image)));
  c.data = first.data;
  static_cast<Extents&>(c) = std::move(first.extents);
  if (fields.has("addend")) {
    const json& addend = *TRY(fields.object("addend"));
    c.addend = TRY(image_from(JsonFields(addend)));
  }
  for (const json& entry : *TRY(fields.array("branches"))) {
    const JsonFields own(entry);
    c.branches.push_back(TRY(branch_from(own, c)));
  }
  TRY(check_whole(c, read.schedule, micro_kernel));
  TRY(check_buffers(c, saved.buffers));
  if (saved.constants.size() != c.branches.size())
    return bad_model("{} constants for {} results", saved.constants.size(), c.branches.size());
  for (size_t b = 0; b < c.branches.size(); ++b)
    read.weights.push_back(TRY(PackedOperand::load(c, c.branches[b].out_channels,
                                                   read.schedule.parts, saved.constants[b])));
  return read;
}

Result<std::shared_ptr<Kernel>> load_contraction_kernel(const SavedKernel& saved,
                                                        const MicroKernel& micro_kernel,
                                                        int threads) {
  SavedContraction read = TRY(read_saved_contraction(saved, micro_kernel));
  return std::shared_ptr<Kernel>(TRY(make_contraction_kernel(
      std::move(read.contraction), read.schedule, micro_kernel, threads, std::move(read.weights))));
}

}  // namespace collage::contraction
