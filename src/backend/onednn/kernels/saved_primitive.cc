#include "backend/onednn/kernels/saved_primitive.h"

#include <bit>
#include <memory>
#include <optional>

#include "backend/onednn/kernels/saved_desc.h"
#include "runtime/saved_fields.h"
#include "runtime/team_region.h"
#include "runtime/thread_team.h"

namespace collage::onednn {

using nlohmann::json;

namespace {

// A number as its bits: JSON has no infinities.
json bits_of(float number) { return std::bit_cast<uint32_t>(number); }
Result<float> float_from(const JsonFields& fields, const char* name) {
  const int64_t bits = TRY(fields.integer(name, 0, UINT32_MAX));
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

// What a primitive descriptor says of itself.
class Reader {
 public:
  explicit Reader(const dnnl::primitive& primitive) : pd_(primitive.get_primitive_desc()) {}

  Desc desc(dnnl_query_t what, int index = 0) const {
    const_dnnl_memory_desc_t found = dnnl_primitive_desc_query_md(pd_, what, index);
    dnnl_memory_desc_t copy = nullptr;
    if (found == nullptr || dnnl_memory_desc_clone(&copy, found) != dnnl_success) return Desc();
    return Desc(copy);
  }
  template <typename T>
  T value(dnnl_query_t what) const {
    T result{};
    dnnl_primitive_desc_query(pd_, what, 0, &result);
    return result;
  }
  Dims dims(dnnl_query_t what) const {
    const dnnl_dims_t* found = nullptr;
    if (dnnl_primitive_desc_query(pd_, what, 0, &found) != dnnl_success || found == nullptr)
      return {};
    const auto count = static_cast<size_t>(desc(dnnl_query_src_md).get_ndims() - 2);
    return Dims(*found, *found + count);
  }
  std::string implementation() const { return value<const char*>(dnnl_query_impl_info_str); }
  const_dnnl_primitive_desc_t get() const { return pd_; }

 private:
  const_dnnl_primitive_desc_t pd_;
};

constexpr size_t kMostMasks = 16;

// The dimension along which the sources differ from the result.
int concat_axis(const std::vector<Desc>& sources, const Desc& result) {
  for (const Desc& source : sources)
    for (int d = 0; d < result.get_ndims(); ++d)
      if (source.get_dims()[static_cast<size_t>(d)] != result.get_dims()[static_cast<size_t>(d)])
        return d;
  return 0;
}

Result<json> save_post_ops(const Reader& pd) {
  const_dnnl_primitive_attr_t attr = nullptr;
  const_dnnl_post_ops_t ops = nullptr;
  if (dnnl_primitive_desc_get_attr(pd.get(), &attr) != dnnl_success ||
      dnnl_primitive_attr_get_post_ops(attr, &ops) != dnnl_success)
    return unsupported("onednn: a primitive without attributes");
  json list = json::array();
  for (int i = 0; i < dnnl_post_ops_len(ops); ++i) {
    const auto kind = dnnl_post_ops_get_kind(ops, i);
    dnnl_alg_kind_t algorithm{};
    if (kind == dnnl_eltwise) {
      float alpha = 0, beta = 0;
      dnnl_post_ops_get_params_eltwise(ops, i, &algorithm, &alpha, &beta);
      list.push_back({{"algorithm", static_cast<int>(algorithm)},
                      {"alpha", bits_of(alpha)},
                      {"beta", bits_of(beta)}});
    } else if (kind == dnnl_binary) {
      const_dnnl_memory_desc_t found = nullptr;
      dnnl_memory_desc_t copy = nullptr;
      dnnl_post_ops_get_params_binary(ops, i, &algorithm, &found);
      if (found == nullptr || dnnl_memory_desc_clone(&copy, found) != dnnl_success)
        return unsupported("onednn: a post operation without an operand");
      list.push_back({{"algorithm", static_cast<int>(algorithm)},
                      {"operand", TRY(save_desc(Desc(copy), false))}});
    } else {
      return unsupported("onednn: a post operation of kind {}", static_cast<int>(kind));
    }
  }
  return list;
}

Result<Masks> masks_from(const JsonFields& fields) {
  Masks masks;
  if (!fields.has("masks")) return masks;
  const std::vector<int64_t> numbers =
      TRY(integers_from(fields, "masks", 0, 2 * (DNNL_ARG_ATTR_ZERO_POINTS - 1), 2 * kMostMasks));
  for (size_t i = 0; i + 1 < numbers.size(); i += 2) {
    const auto arg = static_cast<int>(numbers[i]), mask = static_cast<int>(numbers[i + 1]);
    const bool scales = (arg & DNNL_ARG_ATTR_SCALES) != 0;
    if (scales == ((arg & DNNL_ARG_ATTR_ZERO_POINTS) != 0) || mask >= 1 << DNNL_MAX_NDIMS)
      return bad_model("onednn: a mask {} of argument {}", mask, arg);
    masks.emplace_back(arg, mask);
  }
  return masks;
}

Result<dnnl::primitive_attr> load_attributes(const JsonFields& fields) {
  dnnl::post_ops ops;
  for (const json& entry : *TRY(fields.array("post"))) {
    const JsonFields own(entry);
    const auto algorithm = static_cast<dnnl::algorithm>(TRY(own.integer("algorithm", 0, 1 << 24)));
    if (own.has("operand")) {
      ops.append_binary(algorithm, TRY(load_desc(*TRY(own.object("operand")))));
    } else {
      ops.append_eltwise(algorithm, TRY(float_from(own, "alpha")), TRY(float_from(own, "beta")));
    }
  }
  return attributes(ops, TRY(masks_from(fields)));
}

enum Parts : unsigned {
  kProp = 1,
  kAlgorithm = 2,
  kWeights = 4,  // and bias
  kWindow = 8,   // strides, dilation, padding
  kKernel = 16,
  kAlphaBeta = 32,
  kAxis = 64,
  kEpsilon = 128,
  kFlags = 256,
  kP = 512,
  kSources = 1024,  // more than one
};

struct Kind {
  dnnl_primitive_kind_t kind;
  unsigned parts;
};
constexpr Kind kKinds[] = {
    {dnnl_reorder, 0},
    {dnnl_concat, kSources | kAxis},
    {dnnl_convolution, kProp | kAlgorithm | kWeights | kWindow},
    {dnnl_deconvolution, kProp | kAlgorithm | kWeights | kWindow},
    {dnnl_inner_product, kProp | kWeights},
    {dnnl_matmul, kWeights},
    {dnnl_pooling, kProp | kAlgorithm | kWindow | kKernel},
    {dnnl_eltwise, kProp | kAlgorithm | kAlphaBeta},
    {dnnl_binary, kAlgorithm | kSources},
    {dnnl_softmax, kProp | kAlgorithm | kAxis},
    {dnnl_layer_normalization, kProp | kEpsilon | kFlags},
    {dnnl_resampling, kProp | kAlgorithm},
    {dnnl_reduction, kAlgorithm | kP | kEpsilon},
};

Result<unsigned> parts_of(int kind) {
  for (const Kind& known : kKinds)
    if (known.kind == kind) return known.parts;
  return unsupported("onednn: a primitive of kind {}", kind);
}

// A saved primitive, read.
struct Description {
  int kind = 0;
  std::vector<Desc> sources;
  Desc weights, bias, result;
  dnnl_prop_kind_t prop{};
  dnnl_alg_kind_t algorithm{};
  Dims strides, dilation, padding_begin, padding_end, kernel;
  float alpha = 0, beta = 0, epsilon = 0, p = 0;
  int axis = 0;
  unsigned flags = 0;
  dnnl::primitive_attr attr;
};

constexpr int64_t kMost = INT32_MAX;
constexpr size_t kMostSources = 4096;

Result<Description> read(const JsonFields& fields) {
  Description d;
  d.kind = static_cast<int>(TRY(fields.integer("kind", 0, 1 << 16)));
  const unsigned parts = TRY(parts_of(d.kind));
  const json& sources = *TRY(fields.array("sources"));
  if (sources.empty() || sources.size() > kMostSources ||
      (d.kind == dnnl_binary && sources.size() != 2))
    return bad_model("onednn: a primitive of {} sources", sources.size());
  for (const json& source : sources) d.sources.push_back(TRY(load_desc(source)));
  d.result = TRY(load_desc(*TRY(fields.object("result"))));
  if (parts & kWeights) {
    d.weights = TRY(load_desc(*TRY(fields.object("weights"))));
    if (fields.has("bias")) d.bias = TRY(load_desc(*TRY(fields.object("bias"))));
  }
  if (parts & kProp)
    d.prop = static_cast<dnnl_prop_kind_t>(TRY(fields.integer("prop", 0, 1 << 16)));
  if (parts & kAlgorithm)
    d.algorithm = static_cast<dnnl_alg_kind_t>(TRY(fields.integer("algorithm", 0, 1 << 24)));
  const auto dims = [&](const char* name, int64_t low) -> Result<Dims> {
    Dims found = TRY(integers_from(fields, name, low, kMost, DNNL_MAX_NDIMS));
    if (static_cast<int>(found.size()) + 2 != d.sources[0].get_ndims())
      return bad_model("onednn: '{}' of {} dimensions", name, found.size());
    return found;
  };
  if (parts & kWindow) {
    d.strides = TRY(dims("strides", 1));
    d.dilation = TRY(dims("dilation", 0));
    d.padding_begin = TRY(dims("padding_begin", -kMost));
    d.padding_end = TRY(dims("padding_end", -kMost));
  }
  if (parts & kKernel) d.kernel = TRY(dims("kernel", 1));
  if (parts & kAlphaBeta) {
    d.alpha = TRY(float_from(fields, "alpha"));
    d.beta = TRY(float_from(fields, "beta"));
  }
  if (parts & kEpsilon) d.epsilon = TRY(float_from(fields, "epsilon"));
  if (parts & kP) d.p = TRY(float_from(fields, "p"));
  if (parts & kAxis)
    d.axis = static_cast<int>(TRY(fields.integer("axis", 0, d.result.get_ndims() - 1)));
  if (parts & kFlags) d.flags = static_cast<unsigned>(TRY(fields.integer("flags", 0, 1 << 16)));
  d.attr = TRY(load_attributes(fields));
  return d;
}

const_dnnl_memory_desc_t or_null(const Desc& desc) {
  return desc.get_ndims() == 0 ? nullptr : desc.get();
}

dnnl_status_t create(const Description& d, dnnl_primitive_desc_t* pd) {
  dnnl_engine_t on = engine().get();
  const_dnnl_primitive_attr_t attr = d.attr.get();
  const_dnnl_memory_desc_t source = d.sources[0].get(), result = d.result.get();
  switch (d.kind) {
    case dnnl_reorder:
      return dnnl_reorder_primitive_desc_create(pd, source, on, result, on, attr);
    case dnnl_concat: {
      std::vector<const_dnnl_memory_desc_t> all;
      for (const Desc& desc : d.sources) all.push_back(desc.get());
      return dnnl_concat_primitive_desc_create(pd, on, result, static_cast<int>(all.size()), d.axis,
                                               all.data(), attr);
    }
    case dnnl_convolution:
      return dnnl_convolution_forward_primitive_desc_create(
          pd, on, d.prop, d.algorithm, source, d.weights.get(), or_null(d.bias), result,
          d.strides.data(), d.dilation.data(), d.padding_begin.data(), d.padding_end.data(), attr);
    case dnnl_deconvolution:
      return dnnl_deconvolution_forward_primitive_desc_create(
          pd, on, d.prop, d.algorithm, source, d.weights.get(), or_null(d.bias), result,
          d.strides.data(), d.dilation.data(), d.padding_begin.data(), d.padding_end.data(), attr);
    case dnnl_inner_product:
      return dnnl_inner_product_forward_primitive_desc_create(
          pd, on, d.prop, source, d.weights.get(), or_null(d.bias), result, attr);
    case dnnl_matmul:
      return dnnl_matmul_primitive_desc_create(pd, on, source, d.weights.get(), or_null(d.bias),
                                               result, attr);
    case dnnl_pooling:
      return dnnl_pooling_forward_primitive_desc_create(
          pd, on, d.prop, d.algorithm, source, result, d.strides.data(), d.kernel.data(),
          d.dilation.data(), d.padding_begin.data(), d.padding_end.data(), attr);
    case dnnl_eltwise:
      return dnnl_eltwise_forward_primitive_desc_create(pd, on, d.prop, d.algorithm, source, result,
                                                        d.alpha, d.beta, attr);
    case dnnl_binary:
      return dnnl_binary_primitive_desc_create(pd, on, d.algorithm, source, d.sources[1].get(),
                                               result, attr);
    case dnnl_softmax:
      return dnnl_softmax_forward_primitive_desc_create(pd, on, d.prop, d.algorithm, source, result,
                                                        d.axis, attr);
    case dnnl_layer_normalization:
      return dnnl_layer_normalization_forward_primitive_desc_create(
          pd, on, d.prop, source, result, nullptr, d.epsilon, d.flags, attr);
    case dnnl_resampling:
      return dnnl_resampling_forward_primitive_desc_create(pd, on, d.prop, d.algorithm, nullptr,
                                                           source, result, attr);
    case dnnl_reduction:
      return dnnl_reduction_primitive_desc_create(pd, on, d.algorithm, source, result, d.p,
                                                  d.epsilon, attr);
    default:
      return dnnl_unimplemented;
  }
}

}  // namespace

Desc argument_desc(const dnnl::primitive& primitive, int arg) {
  return Reader(primitive).desc(dnnl_query_exec_arg_md, arg);
}

Result<Masks> load_masks(const json& saved) { return masks_from(JsonFields(saved)); }

Result<json> save_primitive(const dnnl::primitive& primitive, const Masks& masks) {
  const Reader pd(primitive);
  const int kind = pd.value<dnnl_primitive_kind_t>(dnnl_query_primitive_kind);
  const unsigned parts = TRY(parts_of(kind));
  json saved = {{"kind", kind},
                {"implementation", pd.implementation()},
                {"scratchpad", pd.desc(dnnl_query_scratchpad_md).get_size()},
                {"sources", json::array()},
                {"post", TRY(save_post_ops(pd))}};
  for (const auto& [arg, mask] : masks) {
    saved["masks"].push_back(arg);
    saved["masks"].push_back(mask);
  }
  std::vector<Desc> sources;
  for (int i = 0; i == 0 || (parts & kSources); ++i) {
    const Desc source = pd.desc(dnnl_query_src_md, i);
    if (source.get_ndims() == 0) break;
    saved["sources"].push_back(TRY(save_desc(source, false)));
    sources.push_back(source);
  }
  const Desc result = pd.desc(dnnl_query_dst_md);
  saved["result"] = TRY(save_desc(result, false));
  if (parts & kWeights) {
    saved["weights"] = TRY(save_desc(pd.desc(dnnl_query_weights_md), true));
    if (const Desc bias = pd.desc(dnnl_query_weights_md, 1); bias.get_ndims() > 0)
      saved["bias"] = TRY(save_desc(bias, false));
  }
  if (parts & kProp)
    saved["prop"] = static_cast<int>(pd.value<dnnl_prop_kind_t>(dnnl_query_prop_kind));
  if (parts & kAlgorithm)
    saved["algorithm"] = static_cast<int>(pd.value<dnnl_alg_kind_t>(dnnl_query_alg_kind));
  if (parts & kWindow) {
    saved["strides"] = pd.dims(dnnl_query_strides);
    saved["dilation"] = pd.dims(dnnl_query_dilations);
    saved["padding_begin"] = pd.dims(dnnl_query_padding_l);
    saved["padding_end"] = pd.dims(dnnl_query_padding_r);
  }
  if (parts & kKernel) saved["kernel"] = pd.dims(dnnl_query_kernel);
  if (parts & kAlphaBeta) {
    saved["alpha"] = bits_of(pd.value<float>(dnnl_query_alpha_f32));
    saved["beta"] = bits_of(pd.value<float>(dnnl_query_beta_f32));
  }
  if (parts & kEpsilon) saved["epsilon"] = bits_of(pd.value<float>(dnnl_query_epsilon_f32));
  if (parts & kP) saved["p"] = bits_of(pd.value<float>(dnnl_query_p_f32));
  if (parts & kAxis)
    saved["axis"] =
        kind == dnnl_concat ? concat_axis(sources, result) : pd.value<int>(dnnl_query_axis_s32);
  if (parts & kFlags) saved["flags"] = pd.value<unsigned>(dnnl_query_flags);
  const dnnl::primitive again = TRY(load_primitive(saved));
  if (parts & kWeights &&
      !(Reader(again).desc(dnnl_query_weights_md) == pd.desc(dnnl_query_weights_md)))
    return unsupported("onednn: weights in a form that no description makes");
  return saved;
}

namespace {

// With as many threads as regions have now; none where it takes more memory than `scratchpad`.
Result<std::optional<dnnl::primitive>> make_primitive(const Description& description,
                                                      const JsonFields& fields, size_t scratchpad) {
  const std::string wanted = TRY(fields.text("implementation"));
  dnnl_primitive_desc_t made = nullptr;
  if (create(description, &made) != dnnl_success)
    return bad_model("onednn: a primitive of kind {} is not to be had", description.kind);
  const std::unique_ptr<dnnl_primitive_desc, decltype(&dnnl_primitive_desc_destroy)> pd(
      made, dnnl_primitive_desc_destroy);
  const auto name = [&] {
    const char* text = "";
    dnnl_primitive_desc_query(made, dnnl_query_impl_info_str, 0, &text);
    return std::string_view(text);
  };
  while (name() != wanted)
    if (dnnl_primitive_desc_next_impl(made) != dnnl_success)
      return bad_model("onednn: there is no implementation '{}' here", wanted);
  const auto* memory = dnnl_primitive_desc_query_md(made, dnnl_query_scratchpad_md, 0);
  if (memory != nullptr && dnnl_memory_desc_get_size(memory) > scratchpad)
    return std::optional<dnnl::primitive>();
  dnnl::primitive primitive(made);
  const Reader reader(primitive);
  if (fields.has("weights"))
    TRY(check_chosen(*TRY(fields.object("weights")), reader.desc(dnnl_query_weights_md)));
  return std::optional(std::move(primitive));
}

}  // namespace

Result<dnnl::primitive> load_primitive(const json& saved) {
  const JsonFields fields(saved);
  const Description description = TRY(read(fields));
  const auto scratchpad = static_cast<size_t>(TRY(fields.integer("scratchpad", 0, most_bytes())));
  // Some take memory for each thread: where it was saved for fewer, it runs with fewer.
  for (int threads = team_threads(); threads > 0; --threads) {
    const TeamScope scope(threads);
    if (std::optional<dnnl::primitive> made = TRY(make_primitive(description, fields, scratchpad)))
      return *std::move(made);
  }
  return bad_model("onednn: '{}' takes more memory here", TRY(fields.text("implementation")));
}

}  // namespace collage::onednn
