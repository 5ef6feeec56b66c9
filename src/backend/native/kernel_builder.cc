#include "backend/native/kernel_builder.h"

#include <algorithm>

#include "backend/native/called_program.h"
#include "backend/native/codegen/array_size.h"
#include "backend/native/integers/integer_products.h"
#include "backend/native/integers/pair_products.h"
#include "backend/native/integers/real_limits.h"
#include "backend/native/kernel_choices.h"
#include "backend/native/stages/generic_schedule.h"
#include "backend/native/stages/horizontal_reductions.h"
#include "backend/native/stages/stage_schedule.h"
#include "backend/native/symbolic/symbolic_kernel.h"
#include "backend/native/templates/conv_template.h"
#include "backend/native/templates/conv_weights.h"
#include "backend/native/templates/weights_ahead.h"
#include "tensor_program/in_place.h"
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
  Draft(const Function& function, std::vector<ChannelLayout> params, bool row_stages)
      : emitter(function, std::move(params), row_stages),
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

bool reads_ahead(const ConvChoice& c) {
  return c.winograd ? c.winograd->ahead : !c.upsampled && c.conv.ahead;
}

ImageParam bind_weights(Translator& translator, const ConvChoice& c, bool depthwise,
                        const float* weights) {
  const bool ahead = reads_ahead(c);
  if (c.upsampled) {
    return bind_weights(translator, packed_upsampled_extents(c.problem),
                        pack_upsampled_weights(c.problem, weights), ahead);
  }
  if (c.winograd) {
    return bind_weights(translator, packed_winograd_extents(c.problem, *c.winograd),
                        pack_winograd_weights(c.problem, *c.winograd, weights), ahead);
  }
  if (depthwise) {
    return bind_weights(translator, packed_depthwise_extents(c.problem),
                        pack_depthwise_weights(c.problem, weights), ahead);
  }
  return bind_weights(translator, packed_conv_extents(c.problem, c.conv),
                      pack_conv_weights(c.problem, c.conv, weights), ahead);
}

Result<Func> build_conv_result(Draft& draft, const KernelGroup& group, const Variant& variant,
                               const Epilogue& epilogue, int threads) {
  const std::vector<bool> prologue = prologue_params(group);
  // The data's layout is that of the images the prologue reads; the result's is its own.
  ChannelLayout in = ChannelLayout::kPlain;
  for (size_t i = 0; i < prologue.size(); ++i) {
    if (prologue[i] && !variant.inputs[i].layout.is_plain()) in = layout_of(variant.inputs[i]);
  }
  const ChannelLayout out = layout_of(variant.outputs[0]);
  const std::vector<ConvChoice> choices = conv_choices(group, in, out, threads);
  const std::optional<size_t> position = position_in(variant.schedule, choices.size());
  if (!position) return no_variant(variant);
  const ConvChoice& choice = choices[*position];
  const bool depthwise = group.kind == KernelGroup::Kind::kDepthwise;
  const float* constant = as<ConstantNode>(group.anchor->args[1])->value.data<float>();
  const ImageParam param = bind_weights(draft.translator, choice, depthwise, constant);
  const Expr& data = choice.upsampled ? group.small_image : group.anchor->args[0];
  const size_t rank = data->tensor_type().shape.size();
  const Access input = [&reader = draft.reader, data, rank](const Coords& at) {
    return reader.value(data, to_rank(at, rank));
  };
  if (choice.upsampled)
    return build_upsampled(choice.problem, *choice.upsampled, input, param, epilogue);
  if (choice.winograd)
    return build_winograd(choice.problem, *choice.winograd, input, param, epilogue);
  return depthwise ? build_depthwise(choice.problem, choice.depthwise, input, param, epilogue)
                   : build_conv(choice.problem, choice.conv, input, param, epilogue);
}

Result<Func> build_matmul_result(Draft& draft, const KernelGroup& group, const Variant& variant,
                                 const Epilogue& epilogue, int threads) {
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
  const bool half = variant.schedule.starts_with(kHalfWeights);
  const std::vector<MatmulSchedule> schedules = matmul_schedules(problem, threads, has_avx512());
  const std::optional<size_t> position = position_in(
      std::string_view(variant.schedule).substr(half ? kHalfWeights.size() : 0), schedules.size());
  if (!position) return no_variant(variant);
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

/// Parameters that the code never reads still take part in the variant, not in the pipeline.
void finish(BuiltKernel& built, Translator& translator, std::vector<Func> outputs) {
  translator.apply_schedule();
  built.bindings = std::move(translator.bindings());
  built.calls_library = translator.calls_library();
  for (size_t i = 0; i < outputs.size(); ++i) {
    fix_dense(outputs[i].output_buffer(), built.result_extents[i]);
    built.result_types.push_back(outputs[i].types()[0]);
  }
  built.pipeline = Halide::Pipeline(outputs);
  for (const Binding& binding : built.bindings) {
    if (binding.ahead) read_ahead(built.pipeline, binding.buffer.param().name());
  }
  if (translator.multiplies_pairs()) lower_pair_products(built.pipeline);
  reduce_horizontally(built.pipeline);
  lower_limits(built.pipeline);
}

std::vector<Func> result_funcs(const tensor_program::Program& program, Translator& translator) {
  std::vector<Func> outputs;
  for (const std::string& name : program.results()) outputs.push_back(translator.func(name));
  return outputs;
}
std::vector<Func> result_funcs(Draft& draft) {
  return result_funcs(draft.emitter.program(), draft.translator);
}

void finish(BuiltKernel& built, Draft& draft, std::vector<Func> outputs) {
  built.key = draft.reader.key();
  finish(built, draft.translator, std::move(outputs));
}

/// Of a function in which a tensor program of a user is called.
Result<tensor_program::Program> program_of_stages(const Function& function, const Variant& variant,
                                                  int threads) {
  if (variant.schedule == kProgram) {
    std::optional<tensor_program::Program> program = TRY(called_program(function));
    if (program) return std::move(*program);
  }
  if (const auto schedule = parse_stage_schedule(variant.schedule)) {
    std::vector<ChannelLayout> layouts;
    if (variant.outputs[0].layout != Layout()) layouts = layouts_of(variant);
    const Function computed =
        schedule->integers ? TRY(with_integer_products(function)).function : function;
    const tensor_program::Program stages = TRY(emitted_stages(computed, std::move(layouts)));
    return guarded_loops(TRY(with_schedule(stages, *schedule, threads)), true);
  }
  return no_variant(variant);
}

BuiltKernel build_stages(const tensor_program::Program& program, bool whole, bool ahead) {
  Translator translator(program, whole);
  BuiltKernel built;
  built.checked = true;
  for (const std::string& name : program.results()) {
    const Shape shape = program.type_of(name).shape;
    built.result_extents.push_back({shape.rbegin(), shape.rend()});
  }
  for (const auto& [param, result] : tensor_program::in_place_results(program)) {
    // An argument may stand for several parameters.
    const auto same = [at = param->param](const auto& buffer) { return buffer.param == at; };
    if (std::count_if(program.buffers.begin(), program.buffers.end(), same) == 1)
      built.updates.push_back({static_cast<size_t>(param->param), result});
  }
  tensor_program::ProgramKey key;
  key.add(program);
  built.key = key.text() + (ahead ? " ahead" : "");
  const std::vector<Func> results = result_funcs(program, translator);
  for (Binding& binding : translator.bindings())
    binding.ahead = ahead && static_cast<int64_t>(binding.constant.bytes()) >= kLeastBytesAhead;
  finish(built, translator, results);
  return built;
}

}  // namespace

Result<BuiltKernel> build_kernel(const Function& function, const Variant& variant, int threads) {
  if (variant.schedule.starts_with(kSymbolic))
    return build_symbolic(function, variant.schedule, threads);
  const std::optional<StageSchedule> stages = parse_stage_schedule(variant.schedule);
  if (stages || computes_stages(function))
    return build_stages(TRY(program_of_stages(function, variant, threads)),
                        variant.schedule != kProgram, stages && stages->ahead);
  const Function collapsed = collapsed_for(function, variant);
  const KernelGroup group = TRY(analyse_group(collapsed));
  std::vector<ChannelLayout> params;
  for (const Encoding& input : variant.inputs) params.push_back(layout_of(input));
  Draft draft(collapsed, std::move(params), group.row_stages);
  BuiltKernel built;
  if (group.anchor == nullptr) {
    for (size_t i = 0; i < group.results.size(); ++i) {
      const ChannelLayout layout = layout_of(variant.outputs[i]);
      built.result_extents.push_back(
          physical_extents(group.results[i]->tensor_type().shape, layout));
      add_result(draft.emitter, group, group.results[i], "result" + std::to_string(i), layout,
                 threads);
    }
    if (!group.row_stages) schedule_stages_first(draft.emitter);
    finish(built, draft, result_funcs(draft));
    return built;
  }

  if (group.kind == KernelGroup::Kind::kAttention) {
    const AttentionSchedule schedule = attention_schedule(group.attention, has_avx512());
    Func out = build_attention_result(draft, group, schedule);
    const Shape& shape = group.anchor->tensor_type().shape;
    std::vector<int64_t> strides(shape.size(), 1);
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      const auto d = static_cast<size_t>(group.result_order[i]);
      strides[shape.size() - 1 - d] = stride;
      stride *= shape[d];
    }
    schedule_stages_first(draft.emitter);
    // Queries are numbered by span and within it.
    std::vector<int64_t> extents(shape.rbegin(), shape.rend());
    const int64_t span = attention_span(group.attention, schedule);
    extents.insert(extents.begin() + 2, extents[1] / span);
    extents[1] = span;
    strides.insert(strides.begin() + 2, strides[1] * span);
    built.result_extents.push_back(std::move(extents));
    finish(built, draft, {out});
    fix_strided(out.output_buffer(), built.result_extents[0], strides);
    return built;
  }

  // The anchor's value is the accumulator; the element-wise rest of the function is the epilogue.
  const Expr anchor = *std::find_if(group.order.begin(), group.order.end(),
                                    [&](const Expr& e) { return e.get() == group.anchor; });
  const size_t rank = anchor->tensor_type().shape.size();
  const bool conv = group.kind != KernelGroup::Kind::kMatmul;
  const std::optional<double> bound = largest_sum(draft, *group.anchor);
  const Epilogue epilogue = [&](const HExpr& sum, const Coords& at) {
    HExpr value = draft.reader.value_after(anchor, sum, bound, group.results[0],
                                           conv ? to_rank(at, rank) : at);
    if (group.results[0]->tensor_type().dtype == DType::kBool) value = Halide::cast<uint8_t>(value);
    return value;
  };
  Func out = TRY(conv ? build_conv_result(draft, group, variant, epilogue, threads)
                      : build_matmul_result(draft, group, variant, epilogue, threads));
  if (conv) {
    Shape full = group.results[0]->tensor_type().shape;
    full.insert(full.begin() + 2, 5 - full.size(), 1);
    std::vector<int64_t> extents = physical_extents(full, layout_of(variant.outputs[0]));
    // The phases of an enlarged image are dimensions of their own in the same memory.
    if (out.dimensions() == 7) {
      extents = {extents[0], 2, extents[1] / 2, 2, extents[2] / 2, extents[4], extents[5]};
    }
    built.result_extents.push_back(extents);
  } else {
    const Shape& shape = group.results[0]->tensor_type().shape;
    built.result_extents.push_back({shape.rbegin(), shape.rend()});
  }
  schedule_stages_first(draft.emitter);
  finish(built, draft, {out});
  return built;
}

Result<BuiltKernel> build_conversion(const TensorType& type, ChannelLayout from, ChannelLayout to) {
  for (const ChannelLayout layout : {from, to})
    TRY(check_array_size("a tensor",
                         {tensor_program::physical_shape(type.shape, layout), type.dtype}));
  const Expr var = make_var("x", type);
  const Function function = make_function({var}, var);
  KernelGroup group;
  group.function = function;
  Draft draft(function, {from}, false);
  BuiltKernel built;
  built.result_extents.push_back(physical_extents(type.shape, to));
  add_result(draft.emitter, group, var, "result", to, 2);
  finish(built, draft, result_funcs(draft));
  return built;
}

}  // namespace collage::native
