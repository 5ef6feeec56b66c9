#include "backend/onednn/onednn_backend.h"

#include <algorithm>

#include "backend/fingerprint.h"
#include "backend/onednn/implementation.h"
#include "backend/onednn/patterns.h"
#include "ir/op.h"

namespace collage {

namespace onednn {
namespace {

struct Family {
  std::vector<std::string_view> operators;
  Result<std::vector<Implementation>> (*plan)(const CompositePtr&);
};

const std::vector<Family>& families() {
  static const std::vector<Family> table = {
      {{"nn.conv1d", "nn.conv2d", "nn.conv3d"}, plan_convolution},
      {{"nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"},
       plan_transposed_convolution},
      {{"nn.dense", "nn.matmul", "nn.batch_matmul"}, plan_product},
      {{"nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.avg_pool1d", "nn.avg_pool2d",
        "nn.avg_pool3d", "nn.global_avg_pool1d", "nn.global_avg_pool2d", "nn.global_avg_pool3d",
        "nn.global_max_pool1d", "nn.global_max_pool2d", "nn.global_max_pool3d"},
       plan_pooling},
      {{"nn.softmax", "nn.log_softmax"}, plan_softmax},
      {{"nn.attention"}, plan_attention},
      {{"nn.layer_norm"}, plan_layer_norm},
      {{"mean", "sum", "max", "min", "prod"}, plan_reduction},
      {{"image.resize1d", "image.resize2d", "image.resize3d"}, plan_resampling},
      {{"concatenate"}, plan_concat},
      {{"transpose", "strided_slice", "nn.pad"}, plan_copy},
  };
  return table;
}

Result<std::vector<Implementation>> plan(const Function& function) {
  auto composite = std::make_shared<const Composite>(TRY(parse_composite(function)));
  return guarded("planning", [&]() -> Result<std::vector<Implementation>> {
    if (composite->anchor == nullptr) return plan_elementwise(composite);
    for (const Family& family : families())
      if (std::find(family.operators.begin(), family.operators.end(),
                    composite->anchor->op->name) != family.operators.end())
        return family.plan(composite);
    return unsupported("onednn: no primitive for {}", composite->anchor->op->name);
  });
}

class OneDnnBackend : public Backend {
 public:
  std::string name() const override { return "onednn"; }
  std::string version() const override {
    return fmt::format("{}-{}", library_version(), source_fingerprint("onednn"));
  }
  Status available() const override {
    return guarded("engine", []() -> Status { return engine(), Status(); });
  }
  int priority() const override { return 20; }

  PartitionRulePtr partition_rule(const Target&) const override {
    static const PartitionRulePtr table = pattern_table();
    return table;
  }

  Result<std::vector<Variant>> variants(const Function& function, const Target&,
                                        const CompileOptions& options) const override {
    ThreadScope threads(options.threads);
    std::vector<Variant> list;
    for (Implementation& implementation : TRY(plan(function)))
      list.push_back(std::move(implementation.variant));
    return list;
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&,
                                          const CompileOptions& options) const override {
    ThreadScope threads(options.threads);
    for (const Implementation& implementation : TRY(plan(function)))
      if (implementation.variant == variant)
        return guarded("compiling",
                       [&]() -> Result<std::unique_ptr<Kernel>> { return implementation.build(); });
    return unsupported("onednn: no variant {}", variant.to_string());
  }

  Result<std::unique_ptr<Kernel>> compile_conversion(const TensorType& type, const Encoding& from,
                                                     const Encoding& to,
                                                     const CompileOptions& options) const override {
    auto rank = static_cast<int64_t>(type.shape.size());
    for (const Encoding* encoding : {&from, &to})
      if (encoding->dtype != DType::kFloat32 || encoding->device != VirtualDevice{} ||
          !expressible(encoding->layout, rank))
        return unsupported("onednn: no conversion from {} to {}", from.to_string(), to.to_string());
    if (num_elements(type.shape) == 0) return unsupported("onednn: an empty tensor");
    ThreadScope threads(options.threads);
    return guarded("conversion", [&]() -> Result<std::unique_ptr<Kernel>> {
      Desc source = desc_of(type.shape, from.layout), target = desc_of(type.shape, to.layout);
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

std::unique_ptr<Backend> make_onednn_backend() { return std::make_unique<onednn::OneDnnBackend>(); }

}  // namespace collage
