#include "backend/onednn/onednn_backend.h"

#include <algorithm>

#include "backend/fingerprint.h"
#include "backend/lost_nan.h"
#include "backend/onednn/implementation.h"
#include "backend/onednn/kernels/loaders.h"
#include "backend/onednn/labels.h"
#include "backend/onednn/patterns.h"
#include "ir/op.h"
#include "runtime/thread_team.h"

namespace collage {

namespace onednn {
namespace {

using Plan = Result<std::vector<Implementation>> (*)(const CompositePtr&);

// Types that its lowered variants may have. Products gain by bfloat16; the others follow suit, so
// that their tensors need not be converted.
enum class Lowering { kNone, kProduct, kRow, kSame };

struct Family {
  std::vector<std::string_view> operators;
  Plan plan;
  Lowering lowering = Lowering::kNone;
  bool bytes = false;  // takes tensors of integers of 8 bits
};

const std::vector<Family>& families() {
  static const std::vector<Family> table = {
      {{"nn.conv1d", "nn.conv2d", "nn.conv3d"}, plan_convolution, Lowering::kProduct},
      {{"nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"},
       plan_transposed_convolution},
      {{"nn.dense", "nn.matmul", "nn.batch_matmul"}, plan_product, Lowering::kProduct},
      {{"qnn.conv1d", "qnn.conv2d", "qnn.conv3d"}, plan_convolution, Lowering::kNone, true},
      {{"qnn.dense", "qnn.matmul"}, plan_product, Lowering::kNone, true},
      {{"qnn.dequantize"}, plan_quantisation, Lowering::kNone, true},
      {{"nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.global_max_pool1d",
        "nn.global_max_pool2d", "nn.global_max_pool3d"},
       plan_pooling,
       Lowering::kSame,
       true},
      {{"nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d", "nn.global_avg_pool1d",
        "nn.global_avg_pool2d", "nn.global_avg_pool3d"},
       plan_pooling,
       Lowering::kSame},
      {{"nn.softmax", "nn.log_softmax"}, plan_softmax, Lowering::kRow},
      {{"nn.attention"}, plan_attention},
      {{"nn.layer_norm"}, plan_layer_norm, Lowering::kRow},
      {{"mean", "sum", "max", "min", "prod"}, plan_reduction},
      {{"image.resize1d", "image.resize2d", "image.resize3d"}, plan_resampling},
      {{"concatenate"}, plan_concat, Lowering::kSame, true},
      {{"transpose", "strided_slice", "nn.pad"}, plan_copy, Lowering::kNone, true},
  };
  return table;
}

Result<Family> family_of(const Composite& composite) {
  if (composite.anchor == nullptr) return Family{{}, plan_elementwise, Lowering::kSame};
  const std::string& op = composite.anchor->op->name;
  for (const Family& family : families()) {
    const auto& operators = family.operators;
    if (std::find(operators.begin(), operators.end(), op) == operators.end()) continue;
    if (composite.types.bytes() && !family.bytes) return unsupported("onednn: {} of integers", op);
    return family;
  }
  return unsupported("onednn: no primitive for {}", op);
}

Result<std::vector<Implementation>> plan(const Function& function) {
  auto composite = std::make_shared<const Composite>(TRY(parse_composite(function)));
  Family family = TRY(family_of(*composite));
  return guarded("planning", [&] { return family.plan(composite); });
}

bool has_isa(dnnl::cpu_isa wanted) {
  static const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
}

std::vector<Types> lowered_types(Lowering lowering) {
  switch (lowering) {
    case Lowering::kNone:
      return {};
    case Lowering::kSame:
      return {{kBrainFloat, kBrainFloat}};
    case Lowering::kRow:
      return {{kBrainFloat, kBrainFloat}, {kFloat, kBrainFloat}};
    case Lowering::kProduct:
      return {{kBrainFloat, kBrainFloat}, {kBrainFloat, kFloat}};
  }
  return {};
}

Result<std::vector<Implementation>> plan_lowered(const Function& function) {
  const Composite composite = TRY(parse_composite(function));
  if (composite.types.bytes()) return std::vector<Implementation>();
  Family family = TRY(family_of(composite));
  Implementations found;
  for (const Types& types : lowered_types(family.lowering)) {
    auto typed = std::make_shared<Composite>(composite);
    typed->types = types;
    auto list = guarded("planning", [&] { return family.plan(typed); });
    if (!list) {
      found.add(list.status());
      continue;
    }
    for (Implementation& implementation : *list) found.add(std::move(implementation));
  }
  return found.take();
}

constexpr char kLowered[] = "lowered ";  // begins the schedules of what plan_lowered gives

/// Behind `list`: what was planned, of which schedules say the position.
void add_variants(std::vector<Implementation> planned, const char* plan,
                  std::vector<Variant>& list) {
  for (size_t i = 0; i < planned.size(); ++i) {
    list.push_back(std::move(planned[i].variant));
    list.back().schedule = plan + std::to_string(i);
  }
}

std::vector<KernelRow> kernel_rows() {
  constexpr char kChosen[] = "implementation, layouts";
  std::vector<KernelRow> rows;
  std::vector<std::string_view> lowered;
  for (const Family& family : families()) {
    rows.push_back({.name = std::string(family.operators[0]),
                    .computes = fmt::format("{}", fmt::join(family.operators, ", ")),
                    .tile = kChosen});
    if (family.lowering != Lowering::kNone)
      lowered.insert(lowered.end(), family.operators.begin(), family.operators.end());
  }
  rows.push_back({.name = "element-wise", .computes = "chains of element-wise operators"});
  rows.push_back({.name = "winograd",
                  .computes = "nn.conv2d of 3x3",
                  .tile = kChosen,
                  .rounding = rounding::kWinograd4,
                  .work = Work::of_winograd(4),
                  .spreads_nan = true});
  rows.push_back({.name = "bfloat16",
                  .computes = fmt::format("{}", fmt::join(lowered, ", ")),
                  .isa = "AVX-512 BF16",
                  .tile = "which tensors are bfloat16",
                  .rounding = rounding::kBFloat16,
                  .work = {.unit = "bfloat16", .constants = 0.5}});
  return rows;
}

class OneDnnBackend : public Backend {
 public:
  OneDnnBackend()
      : Backend("onednn", [] {
          return BackendTraits{
              .version = fmt::format("{}-{}", library_version(), source_fingerprint("onednn")),
              .priority = 20,
              .compiles_fast = true,
              .lowers = has_isa(dnnl::cpu_isa::avx512_core_bf16),
              .loses_nan = losing_nan_in_onednn(),
              .kernels = kernel_rows()};
        }) {}
  Status available() const override {
    return guarded("engine", []() -> Status { return engine(), Status(); });
  }

  PartitionRulePtr partition_rule(const Target&) const override {
    static const PartitionRulePtr table = pattern_table();
    return table;
  }

  Result<std::vector<Variant>> variants(const Function& function, const Target&,
                                        const CompileOptions& options) const override {
    const TeamScope team(options.threads);
    std::vector<Variant> list;
    add_variants(TRY(plan(function)), "", list);
    if (options.rounding != RoundingLimit::kAny || !traits().lowers) return list;
    // What has none of these has the others all the same.
    if (Result<std::vector<Implementation>> lowered = plan_lowered(function))
      add_variants(std::move(lowered).value(), kLowered, list);
    return list;
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&,
                                          const CompileOptions& options) const override {
    const TeamScope team(options.threads);
    const bool lowered = variant.schedule.starts_with(kLowered);
    const std::vector<Implementation> planned =
        TRY(lowered ? plan_lowered(function) : plan(function));
    const std::string_view position =
        std::string_view(variant.schedule).substr(lowered ? std::string_view(kLowered).size() : 0);
    const std::optional<size_t> index = position_in(position, planned.size());
    if (!index || !(planned[*index].variant == variant))
      return unsupported("onednn: no variant {}", variant.to_string());
    return guarded("compiling",
                   [&]() -> Result<std::unique_ptr<Kernel>> { return planned[*index].build(); });
  }

  Result<std::unique_ptr<Kernel>> compile_conversion(const TensorType& type, const Encoding& from,
                                                     const Encoding& to,
                                                     const CompileOptions& options) const override {
    auto rank = static_cast<int64_t>(type.shape.size());
    for (const Encoding* encoding : {&from, &to})
      if (!type_of(encoding->dtype) || encoding->device != VirtualDevice{} ||
          !expressible(encoding->layout, rank))
        return unsupported("onednn: no conversion from {} to {}", from.to_string(), to.to_string());
    if (from.dtype != to.dtype && (is_integer(from.dtype) || is_integer(to.dtype)))
      return unsupported("onednn: no conversion from {} to {}", from.to_string(), to.to_string());
    if (num_elements(type.shape) == 0) return unsupported("onednn: an empty tensor");
    const TeamScope team(options.threads);
    return guarded("conversion", [&]() -> Result<std::unique_ptr<Kernel>> {
      Desc source = desc_of(type.shape, from.layout, TRY(type_of(from.dtype)));
      Desc target = desc_of(type.shape, to.layout, TRY(type_of(to.dtype)));
      dnnl::reorder::primitive_desc pd(engine(), source, engine(), target, attributes());
      ProgramBuilder builder;
      builder.add(pd, {{DNNL_ARG_FROM, builder.input(0, source)},
                       {DNNL_ARG_TO, builder.output(0, target)}});
      return builder.finish();
    });
  }
};

}  // namespace
}  // namespace onednn

std::unique_ptr<Backend> make_onednn_backend() {
  onednn::register_loaders();
  onednn::register_labels();
  return std::make_unique<onednn::OneDnnBackend>();
}

}  // namespace collage
