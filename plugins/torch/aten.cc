#include "aten.h"

#include <ATen/ATen.h>

#include <map>

#include "destination.h"
#include "ops/reduce.h"

namespace collage::torch_plugin {

namespace {

using Inputs = std::vector<at::Tensor>;

using UnaryOut = at::Tensor& (*)(at::Tensor&, const at::Tensor&);
template <UnaryOut kOut>
void unary(const Inputs& in, at::Tensor& out, const Attrs&) {
  kOut(out, in[0]);
}

using BinaryOut = at::Tensor& (*)(at::Tensor&, const at::Tensor&, const at::Tensor&);
template <BinaryOut kOut>
void binary(const Inputs& in, at::Tensor& out, const Attrs&) {
  kOut(out, in[0], in[1]);
}

int64_t axis_of(const Attrs& attrs, const at::Tensor& data) {
  const int64_t axis = attrs.integer("axis");
  return axis < 0 ? axis + data.dim() : axis;
}

Ints axes_of(const Attrs& attrs, const at::Tensor& data) {
  return reduced_axes(attrs, data.dim()).value();
}

// The begins, which equal the ends.
Ints padding_of(const Attrs& attrs) {
  const Ints& both = attrs.ints("padding");
  return {both.begin(), both.begin() + static_cast<int64_t>(both.size() / 2)};
}

// A vector that stands along the axis.
at::Tensor along(const at::Tensor& vector, int64_t axis, int64_t rank) {
  Ints shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = vector.numel();
  return vector.view(shape);
}

void multiply_matrices(const at::Tensor& a, const at::Tensor& b, at::Tensor& out) {
  const int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  // Batches of rows that one matrix multiplies are more rows.
  if (b.numel() == k * n && (a.dim() == 2 || a.is_contiguous())) {
    at::Tensor rows = out.view({-1, n});
    at::mm_out(rows, a.reshape({-1, k}), b.reshape({k, n}));
    return;
  }
  const at::IntArrayRef batch = out.sizes().slice(0, static_cast<size_t>(out.dim() - 2));
  const auto batched = [&](const at::Tensor& operand, int64_t rows, int64_t columns) {
    Ints shape(batch.begin(), batch.end());
    shape.push_back(rows);
    shape.push_back(columns);
    return operand.expand(shape).reshape({-1, rows, columns});
  };
  at::Tensor products = out.view({-1, m, n});
  at::bmm_out(products, batched(a, m, k), batched(b, k, n));
}

void matmul(const Inputs& in, at::Tensor& out, const Attrs& attrs) {
  multiply_matrices(attrs.flag("transpose_a") ? in[0].transpose(-2, -1) : in[0],
                    attrs.flag("transpose_b") ? in[1].transpose(-2, -1) : in[1], out);
}

void dense(const Inputs& in, at::Tensor& out, const Attrs&) {
  at::Tensor rows = out.view({-1, in[1].size(0)});
  at::mm_out(rows, in[0].view({-1, in[1].size(1)}), in[1].t());
}

// PyTorch's own doubles before it halves: above half the largest number it is infinite. It is the
// identity from 32 on.
void gelu(const Inputs& in, at::Tensor& out, const Attrs& attrs) {
  const at::Tensor& x = in[0];
  write_to(out, [&] { return at::where(x > 32, x, at::gelu(x, attrs.string("approximate"))); });
}

void group_norm(const Inputs& in, at::Tensor& out, const Attrs& attrs) {
  const at::Tensor& x = in[0];
  const int64_t groups = attrs.has("num_groups") ? attrs.integer("num_groups") : x.size(1);
  write_to(out, [&] {
    return std::get<0>(at::native_group_norm(x, in[1], in[2], x.size(0), x.size(1),
                                             x.numel() / x.size(0) / x.size(1), groups,
                                             attrs.real("epsilon")));
  });
}

void layer_norm(const Inputs& in, at::Tensor& out, const Attrs& attrs) {
  write_to(out, [&] {
    return std::get<0>(
        at::native_layer_norm(in[0], in[1].sizes(), in[1], in[2], attrs.real("epsilon")));
  });
}

void transpose(const Inputs& in, at::Tensor& out, const Attrs& attrs) {
  Ints axes;
  if (attrs.is_none("axes")) {
    for (int64_t d = in[0].dim(); d-- > 0;) axes.push_back(d);
  } else {
    axes = attrs.ints("axes");
  }
  out.copy_(in[0].permute(axes));
}

const std::map<std::string, Compute>& table() {
  static const std::map<std::string, Compute> rows = {
      // Element-wise, of one array.
      {"abs", unary<at::abs_out>},
      {"acos", unary<at::acos_out>},
      {"acosh", unary<at::acosh_out>},
      {"asin", unary<at::asin_out>},
      {"asinh", unary<at::asinh_out>},
      {"atan", unary<at::atan_out>},
      {"atanh", unary<at::atanh_out>},
      {"ceil", unary<at::ceil_out>},
      {"clip",
       [](const Inputs& in, at::Tensor& out, const Attrs& attrs) {
         at::clamp_out(out, in[0], attrs.real("a_min"), attrs.real("a_max"));
       }},
      {"cos", unary<at::cos_out>},
      {"cosh", unary<at::cosh_out>},
      {"erf", unary<at::erf_out>},
      {"exp", unary<at::exp_out>},
      {"floor", unary<at::floor_out>},
      {"log", unary<at::log_out>},
      {"negative", unary<at::neg_out>},
      {"nn.elu", [](const Inputs& in, at::Tensor& out,
                    const Attrs& attrs) { at::elu_out(out, in[0], attrs.real("alpha")); }},
      {"nn.gelu", gelu},
      {"nn.hard_sigmoid",
       [](const Inputs& in, at::Tensor& out, const Attrs& attrs) {
         at::mul_out(out, in[0], at::scalar_tensor(attrs.real("alpha")));
         out.add_(attrs.real("beta")).clamp_(0, 1);
       }},
      {"nn.hard_swish", unary<at::hardswish_out>},
      {"nn.leaky_relu",
       [](const Inputs& in, at::Tensor& out, const Attrs& attrs) {
         at::leaky_relu_out(out, in[0], attrs.real("alpha"));
       }},
      {"nn.mish", unary<at::mish_out>},
      {"nn.relu",
       [](const Inputs& in, at::Tensor& out, const Attrs&) { at::clamp_min_out(out, in[0], 0); }},
      {"nn.silu", unary<at::silu_out>},
      {"nn.softplus",
       [](const Inputs& in, at::Tensor& out, const Attrs&) { at::softplus_out(out, in[0]); }},
      {"reciprocal", unary<at::reciprocal_out>},
      {"round", unary<at::round_out>},
      {"rsqrt", unary<at::rsqrt_out>},
      {"sigmoid", unary<at::sigmoid_out>},
      {"sin", unary<at::sin_out>},
      {"sinh", unary<at::sinh_out>},
      {"sqrt", unary<at::sqrt_out>},
      {"tan", unary<at::tan_out>},
      {"tanh", unary<at::tanh_out>},
      {"trunc", unary<at::trunc_out>},

      // Of two.
      {"add",
       [](const Inputs& in, at::Tensor& out, const Attrs&) { at::add_out(out, in[0], in[1]); }},
      {"divide", binary<at::div_out>},
      {"maximum", binary<at::maximum_out>},
      {"minimum", binary<at::minimum_out>},
      {"multiply", binary<at::mul_out>},
      {"nn.bias_add",
       [](const Inputs& in, at::Tensor& out, const Attrs& attrs) {
         at::add_out(out, in[0], along(in[1], axis_of(attrs, in[0]), in[0].dim()));
       }},
      {"power", binary<at::pow_out>},
      {"subtract",
       [](const Inputs& in, at::Tensor& out, const Attrs&) { at::sub_out(out, in[0], in[1]); }},

      // Products and convolutions.
      {"nn.batch_matmul", matmul},
      {"nn.conv1d",
       [](const Inputs& in, at::Tensor& out, const Attrs& attrs) { convolve(in, {}, out, attrs); }},
      {"nn.conv2d",
       [](const Inputs& in, at::Tensor& out, const Attrs& attrs) { convolve(in, {}, out, attrs); }},
      {"nn.conv3d",
       [](const Inputs& in, at::Tensor& out, const Attrs& attrs) { convolve(in, {}, out, attrs); }},
      {"nn.dense", dense},
      {"nn.matmul", matmul},

      // Windows, reductions, normalisations.
      {"max",
       [](const Inputs& in, at::Tensor& out, const Attrs& attrs) {
         at::amax_out(out, in[0], axes_of(attrs, in[0]), attrs.flag("keepdims"));
       }},
      {"mean",
       [](const Inputs& in, at::Tensor& out, const Attrs& attrs) {
         at::mean_out(out, in[0], axes_of(attrs, in[0]), attrs.flag("keepdims"));
       }},
      {"min",
       [](const Inputs& in, at::Tensor& out, const Attrs& attrs) {
         at::amin_out(out, in[0], axes_of(attrs, in[0]), attrs.flag("keepdims"));
       }},
      {"nn.avg_pool2d",
       [](const Inputs& in, at::Tensor& out, const Attrs& attrs) {
         at::avg_pool2d_out(out, in[0], attrs.ints("pool_size"), attrs.ints("strides"),
                            padding_of(attrs), attrs.flag("ceil_mode"),
                            attrs.flag("count_include_pad"));
       }},
      {"nn.global_avg_pool2d",
       [](const Inputs& in, at::Tensor& out, const Attrs&) {
         at::mean_out(out, in[0], at::IntArrayRef{2, 3}, true);
       }},
      {"nn.global_max_pool2d",
       [](const Inputs& in, at::Tensor& out, const Attrs&) {
         at::amax_out(out, in[0], at::IntArrayRef{2, 3}, true);
       }},
      {"nn.group_norm", group_norm},
      {"nn.instance_norm", group_norm},
      {"nn.layer_norm", layer_norm},
      {"nn.log_softmax",
       [](const Inputs& in, at::Tensor& out, const Attrs& attrs) {
         at::_log_softmax_out(out, in[0], axis_of(attrs, in[0]), false);
       }},
      {"nn.max_pool2d",
       [](const Inputs& in, at::Tensor& out, const Attrs& attrs) {
         write_to(out, [&] {
           return at::max_pool2d(in[0], attrs.ints("pool_size"), attrs.ints("strides"),
                                 padding_of(attrs), attrs.ints("dilation"),
                                 attrs.flag("ceil_mode"));
         });
       }},
      {"nn.softmax",
       [](const Inputs& in, at::Tensor& out, const Attrs& attrs) {
         at::_softmax_out(out, in[0], axis_of(attrs, in[0]), false);
       }},
      {"sum",
       [](const Inputs& in, at::Tensor& out, const Attrs& attrs) {
         at::sum_out(out, in[0], axes_of(attrs, in[0]), attrs.flag("keepdims"));
       }},

      // Moves.
      {"concatenate", [](const Inputs& in, at::Tensor& out,
                         const Attrs& attrs) { at::cat_out(out, in, axis_of(attrs, in[0])); }},
      {"transpose", transpose},
  };
  return rows;
}

}  // namespace

Compute find_compute(const std::string& op) {
  const auto found = table().find(op);
  return found == table().end() ? nullptr : found->second;
}

void convolve(const std::vector<at::Tensor>& inputs, const at::Tensor& bias, at::Tensor& out,
              const Attrs& attrs) {
  const Ints& strides = attrs.ints("strides");
  write_to(out, [&] {
    return at::convolution(inputs[0], inputs[1],
                           bias.defined() ? std::optional<at::Tensor>(bias) : std::nullopt, strides,
                           padding_of(attrs), attrs.ints("dilation"), false,
                           Ints(strides.size(), 0), attrs.integer("groups"));
  });
}

}  // namespace collage::torch_plugin
