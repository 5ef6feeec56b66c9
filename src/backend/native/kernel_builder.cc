#include "backend/native/kernel_builder.h"

#include <algorithm>
#include <memory>

#include "backend/native/codegen/array_size.h"
#include "backend/native/codegen/vector_width.h"
#include "backend/native/kernel_choices.h"
#include "backend/native/kernel_variants.h"
#include "backend/native/stages/schedule_steps.h"
#include "backend/native/stages/stage_schedule.h"
#include "tensor_program/emit/emit.h"
#include "tensor_program/magnitude.h"

namespace collage::native {
namespace {

using Halide::Func;
using Halide::ImageParam;

/// A template's (n, c, z, y, x) as coordinates of a tensor of that rank.
Coords to_rank(const Coords& at, size_t rank) {
  Coords result{{at.logical[0], at.logical[1]}, at.block, at.lane};
  for (size_t d = 5 - (rank - 2); d < 5; ++d) result.logical.push_back(at.logical[d]);
  return result;
}

Status no_variant(const Variant& variant) {
  return internal_error("native: no variant {}", variant.to_string());
}

/// A kernel while it is built: its function as terms, and those as Halide.
struct Draft {
  Draft(const Function& function, std::vector<ChannelLayout> params)
      : emitter(function, std::move(params), false),
        translator(emitter.program()),
        reader(emitter, translator) {}

  tensor_program::Emitter emitter;
  Translator translator;
  Reader reader;
};

/// What the anchor's result is not above, where its data are bytes, say, and its weights finite.
std::optional<double> largest_sum(Draft& draft, const CallNode& anchor) {
  const auto* weights = as<ConstantNode>(anchor.args[1]);
  if (weights == nullptr) return std::nullopt;
  const std::optional<double> data = draft.reader.magnitude(anchor.args[0]);
  if (!data) return std::nullopt;
  const std::optional<double> weight = tensor_program::magnitude_of_values(weights->value);
  if (!weight) return std::nullopt;
  return *data * *weight * static_cast<double>(weights->value.size());
}

/// Packed weights, extents innermost first, become an argument of the kernel.
template <typename T>
ImageParam bind_weights(Translator& translator, const std::vector<int64_t>& extents,
                        const PackedWeights<T>& weights, bool ahead) {
  const BufferArg buffer("weights", Halide::type_of<T>(), {extents.rbegin(), extents.rend()});
  translator.bindings().push_back({buffer, -1, {}, weights.memory(), weights.bytes(), ahead});
  return translator.bindings().back().buffer.param();
}

/// Which template computes the group, and the layout of its result.
Result<ConvChoice> choice_of(const KernelGroup& group, const Request& request) {
  const std::vector<bool> prologue = prologue_params(group);
  const Variant& variant = request.variant;
  // The data's layout is that of the images the prologue reads; the result's is its own.
  ChannelLayout in = ChannelLayout::kPlain;
  for (size_t i = 0; i < prologue.size(); ++i) {
    if (prologue[i] && !variant.inputs[i].layout.is_plain()) in = layout_of(variant.inputs[i]);
  }
  const std::vector<ConvChoice> choices =
      conv_choices(group, in, layout_of(variant.outputs[0]), request.threads);
  const std::optional<size_t> position = position_in(request.schedule, choices.size());
  if (!position) return no_variant(variant);
  return choices[*position];
}

Func build_conv_result(Draft& draft, const KernelGroup& group, const ConvChoice& choice,
                       const Epilogue& epilogue) {
  const float* constant = as<ConstantNode>(group.anchor->args[1])->value.data<float>();
  const ImageParam param =
      bind_weights(draft.translator, choice.packed, choice.pack(constant), choice.reads_ahead);
  const Expr& data = choice.of_small_image ? group.small_image : group.anchor->args[0];
  const size_t rank = data->tensor_type().shape.size();
  const Access input = [&reader = draft.reader, data, rank](const Coords& at) {
    return reader.value(data, to_rank(at, rank));
  };
  return choice.build(input, param, epilogue);
}

Result<Func> build_matmul_result(Draft& draft, const KernelGroup& group, const Request& request,
                                 const Epilogue& epilogue) {
  const MatmulProblem problem = matmul_problem(group);
  const CallNode& anchor = *group.anchor;
  const bool dense = anchor.op->name == "nn.dense";
  const bool transpose_a = !dense && anchor.attrs.flag("transpose_a"),
             transpose_b = dense || anchor.attrs.flag("transpose_b");
  auto operand = [&draft, &anchor](size_t index, bool transposed) -> Access {
    return [&reader = draft.reader, &anchor, index, transposed](const Coords& at) {
      const Shape& shape = anchor.args[index]->tensor_type().shape;
      const size_t skip = at.logical.size() - shape.size();
      Coords c;
      for (size_t d = 0; d < shape.size(); ++d) {
        c.logical.push_back(d + 2 < shape.size() && shape[d] == 1 ? HExpr(0)
                                                                  : at.logical[d + skip]);
      }
      if (transposed) std::swap(c.logical[shape.size() - 1], c.logical[shape.size() - 2]);
      return reader.value(anchor.args[index], c);
    };
  };
  const std::vector<MatmulSchedule> schedules =
      matmul_schedules(problem, request.threads, has_avx512());
  const std::optional<size_t> position = position_in(request.schedule, schedules.size());
  if (!position) return no_variant(request.variant);
  const bool half = request.variant.schedule.starts_with(kHalfProducts);
  const MatmulSchedule& schedule = schedules[*position];
  ImageParam weights;
  if (problem.constant_b) {
    const float* b = as<ConstantNode>(anchor.args[1])->value.data<float>();
    const std::vector<int64_t> extents = packed_matmul_extents(problem.shape);
    const int64_t k_stride = transpose_b ? 1 : problem.shape.n,
                  n_stride = transpose_b ? problem.shape.k : 1;
    weights =
        half ? bind_weights(draft.translator, extents,
                            pack_matmul_weights<uint16_t>(problem.shape, b, k_stride, n_stride),
                            schedule.ahead)
             : bind_weights(draft.translator, extents,
                            pack_matmul_weights<float>(problem.shape, b, k_stride, n_stride),
                            schedule.ahead);
  }
  return build_matmul(problem, schedule, operand(0, transpose_a), operand(1, transpose_b), weights,
                      epilogue);
}

Func build_attention_result(Draft& draft, const KernelGroup& group,
                            const AttentionSchedule& schedule) {
  const CallNode& anchor = *group.anchor;
  auto operand = [&draft, &anchor](size_t index) -> Access {
    if (index >= anchor.args.size()) return {};
    return [&reader = draft.reader, &anchor, index](const Coords& at) {
      // A mask may have fewer dimensions, or extents of one.
      const Shape& shape = anchor.args[index]->tensor_type().shape;
      const size_t skip = at.logical.size() - shape.size();
      Coords own;
      for (size_t d = 0; d < shape.size(); ++d)
        own.logical.push_back(shape[d] == 1 ? HExpr(0) : at.logical[d + skip]);
      return reader.value(anchor.args[index], own);
    };
  };
  return build_attention(group.attention, schedule, operand(0), operand(1), operand(2), operand(3));
}

void finish(BuiltKernel& built, Draft& draft, const std::vector<Func>& outputs) {
  built.key = draft.reader.key();
  finish(built, draft.translator, outputs);
}

/// A reduction that is not along the innermost dimension: one vector at a time inside a task.
void schedule_across(tensor_program::Program& program, const std::string& name, const Names& loops,
                     const Extents& extents) {
  const int width = vector_width();
  Steps(program, name).compute_root();
  if (loops.empty() || extents[0] < width) return;
  Steps(program, name).vectorise(loops[0], width);
  Steps update(program, name, 0);
  update.split(loops[0], "vo", "vi", width, extents[0] % width != 0);
  Names order{"vi"};
  const auto& over = program.find_stage(name)->updates[0].over;
  for (size_t i = over.size(); i-- > 0;) order.push_back(over[i].name);
  order.push_back("vo");
  order.insert(order.end(), loops.begin() + 1, loops.end());
  update.reorder(std::move(order));
  update.vectorise("vi");
  if (loops.size() > 1 && extents.back() * extents[1] > 1) {
    const FusedLoop loop = fuse_from(update, {loops.begin() + 1, loops.end()},
                                     {extents.begin() + 1, extents.end()}, 0);
    if (loop.any() && loop.extent > 1) update.parallel(loop.name);
  } else if (extents[0] > 2 * width) {
    update.parallel("vo");
  }
}

/// Schedules the stages in front of an anchor before everything that reads them.
void schedule_stages_first(tensor_program::Emitter& e) {
  tensor_program::Program& program = e.program();
  for (const auto& stored : e.stored()) {
    Steps total(program, stored->total);
    total.compute_root();
    const tensor_program::Stage& stage = *program.find_stage(stored->total);
    const Names loops = loops_of(stage);
    const Extents extents = extents_of(stage);
    if (stored->vectorise_parts) {
      if (!loops.empty() && extents[0] >= vector_width()) total.vectorise(loops[0], vector_width());
      schedule_across(program, stored->parts[0], loops, extents);
      continue;
    }
    for (const std::string& name : stored->parts) {
      Steps part(program, name);
      if (loops.empty())
        part.compute_root();
      else
        part.compute_at(stored->total, loops[0]);
    }
    const FusedLoop loop = fuse_from(total, loops, extents, loops.size() > 1 ? 1 : 0);
    if (loop.any() && loop.extent > 1) total.parallel(loop.name);
  }
}

/// The function in the dimensions that the variant has, and its terms.
struct Anchored {
  KernelGroup group;
  std::unique_ptr<Draft> draft;
};

Result<Anchored> anchored(const Request& request) {
  KernelGroup group = TRY(analyse_group(collapsed_for(request.function, request.variant)));
  std::vector<ChannelLayout> params;
  for (const Encoding& input : request.variant.inputs) params.push_back(layout_of(input));
  auto draft = std::make_unique<Draft>(group.function, std::move(params));
  return Anchored{std::move(group), std::move(draft)};
}

/// What a template stores of the anchor's value: the element-wise rest of the function.
Epilogue epilogue_of(Draft& draft, const KernelGroup& group, bool image) {
  const Expr anchor = *std::find_if(group.order.begin(), group.order.end(),
                                    [&](const Expr& e) { return e.get() == group.anchor; });
  const size_t rank = anchor->tensor_type().shape.size();
  const std::optional<double> bound = largest_sum(draft, *group.anchor);
  return [&draft, anchor, bound, rank, image, result = group.results[0]](const HExpr& sum,
                                                                         const Coords& at) {
    HExpr value =
        draft.reader.value_after(anchor, sum, bound, result, image ? to_rank(at, rank) : at);
    if (result->tensor_type().dtype == DType::kBool) value = Halide::cast<uint8_t>(value);
    return value;
  };
}

}  // namespace

Result<BuiltKernel> convolution_kernel(const Request& request) {
  const auto [group, draft] = TRY(anchored(request));
  const ConvChoice choice = TRY(choice_of(group, request));
  const Func out = build_conv_result(*draft, group, choice, epilogue_of(*draft, group, true));
  Shape full = group.results[0]->tensor_type().shape;
  full.insert(full.begin() + 2, 5 - full.size(), 1);
  std::vector<int64_t> extents = physical_extents(full, layout_of(request.variant.outputs[0]));
  // The phases of an enlarged image are dimensions of their own in the same memory.
  if (out.dimensions() == 7) {
    extents = {extents[0], 2, extents[1] / 2, 2, extents[2] / 2, extents[4], extents[5]};
  }
  BuiltKernel built;
  built.result_extents.push_back(extents);
  schedule_stages_first(draft->emitter);
  finish(built, *draft, {out});
  return built;
}

Result<BuiltKernel> product_kernel(const Request& request) {
  const auto [group, draft] = TRY(anchored(request));
  const Func out =
      TRY(build_matmul_result(*draft, group, request, epilogue_of(*draft, group, false)));
  const Shape& shape = group.results[0]->tensor_type().shape;
  BuiltKernel built;
  built.result_extents.push_back({shape.rbegin(), shape.rend()});
  schedule_stages_first(draft->emitter);
  finish(built, *draft, {out});
  return built;
}

Result<BuiltKernel> attention_kernel(const Request& request) {
  const auto [group, draft] = TRY(anchored(request));
  const AttentionSchedule schedule = attention_schedule(group.attention, has_avx512());
  Func out = build_attention_result(*draft, group, schedule);
  const Shape& shape = group.anchor->tensor_type().shape;
  std::vector<int64_t> strides(shape.size(), 1);
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    const auto d = static_cast<size_t>(group.result_order[i]);
    strides[shape.size() - 1 - d] = stride;
    stride *= shape[d];
  }
  schedule_stages_first(draft->emitter);
  // Queries are numbered by span and within it.
  std::vector<int64_t> extents(shape.rbegin(), shape.rend());
  const int64_t span = attention_span(group.attention, schedule);
  extents.insert(extents.begin() + 2, extents[1] / span);
  extents[1] = span;
  strides.insert(strides.begin() + 2, strides[1] * span);
  BuiltKernel built;
  built.result_extents.push_back(std::move(extents));
  finish(built, *draft, {out});
  fix_strided(out.output_buffer(), built.result_extents[0], strides);
  return built;
}

Result<BuiltKernel> build_conversion(const TensorType& type, ChannelLayout from, ChannelLayout to) {
  for (const ChannelLayout layout : {from, to})
    TRY(check_array_size("a tensor",
                         {tensor_program::physical_shape(type.shape, layout), type.dtype}));
  const Expr var = make_var("x", type);
  const tensor_program::Program copy =
      TRY(tensor_program::emit(make_function({var}, var), {.layouts = {from, to}}));
  return translated(
      {.program = TRY(with_schedule(tensor_program::plan_stages(copy), {}, 2)), .whole = true});
}

}  // namespace collage::native
