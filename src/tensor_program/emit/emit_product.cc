// Emission of convolutions, products and attention: sums over the pairs of elements they multiply.
// Those of quantised tensors are sums of int32, which are scaled where they are read; products of
// int32 are such sums, too.
// A backend with a template for such an anchor binds it instead; what is emitted here says what the
// template must compute.
#include <algorithm>

#include "ops/quantised.h"
#include "ops/window.h"
#include "tensor_program/emit/emitter.h"

namespace collage::tensor_program {
namespace {

Term read(const std::string& stage, const Coords& at) {
  return load(stage, DType::kFloat32, at.logical);
}

bool is_quantised(const CallNode& call) { return call.op->name.starts_with("qnn."); }

/// A scale or zero point of operand 1, whose channel that is; or the one of operand 0.
Term parameter(Emitter& e, const CallNode& call, size_t i, const Term& channel) {
  Coords at;
  if (!arg_shape(call, i).empty()) at.logical.push_back(channel);
  return e.value(call.args[i], at);
}

/// An element of an operand as it is multiplied: of a quantised one the distance from its zero
/// point. `channel` is that of the result, where the operand is the second.
Term factor(Emitter& e, const CallNode& call, size_t i, Coords at, const Term& channel) {
  const Term x = e.value(call.args[i], at);
  if (!is_quantised(call)) return x;
  Term integer = cast(DType::kInt32, x);
  // As they are, which ranges of values tell by this.
  if (i == 1 && has_weights_of_7_bits(call.attrs))
    integer = clamp(integer, -to_int(kLargestOf7Bits), to_int(kLargestOf7Bits));
  return integer - parameter(e, call, 2 * i + 3, channel);
}

/// The result at those coordinates, of which `channel` is one.
Term finished(Emitter& e, const CallNode& call, const std::string& stage, const Coords& at,
              const Term& channel) {
  if (!is_quantised(call)) return load(stage, call.tensor_type().dtype, at.logical);
  const Term sum = cast(DType::kFloat32, load(stage, DType::kInt32, at.logical));
  return sum * (parameter(e, call, 2, channel) * parameter(e, call, 4, channel));
}

/// Operand 0 at a position that may lie outside the map, where it is zero.
Term padded(Emitter& e, const CallNode& call, std::vector<Term> at) {
  const Shape& shape = arg_shape(call, 0);
  Term inside = integer_constant(1, DType::kBool);
  for (size_t d = 2; d < shape.size(); ++d) {
    inside = inside && at[d] >= 0 && at[d] < to_int(shape[d]);
    at[d] = clamp(at[d], 0, to_int(shape[d] - 1));
  }
  const Term value = factor(e, call, 0, {std::move(at), {}, {}}, {});
  return select(inside, value, zero(value.dtype()));
}

Term conv(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Shape &weight = arg_shape(call, 1), &out = call.tensor_type().shape;
  const Window w = known_window(call.attrs, {weight.begin() + 2, weight.end()});
  const int64_t groups = call.attrs.integer("groups");
  const int channels = to_int(weight[1]), group_size = to_int(out[1] / groups);
  const bool pads =
      std::any_of(w.pad_begin.begin(), w.pad_begin.end(), [](int64_t p) { return p; }) ||
      std::any_of(w.pad_end.begin(), w.pad_end.end(), [](int64_t p) { return p; });
  const std::string stage = e.sum_stage(
      call, 0, out, {weight.begin() + 1, weight.end()},
      [&](const std::vector<Term>& o, const std::vector<Term>& r) {
        std::vector<Term> data{o[0], groups == 1 ? r[0] : o[1] / group_size * channels + r[0]};
        std::vector<Term> taps{o[1], r[0]};
        for (size_t d = 0; d < w.rank(); ++d) {
          data.push_back(o[d + 2] * to_int(w.strides[d]) + r[d + 1] * to_int(w.dilation[d]) -
                         to_int(w.pad_begin[d]));
          taps.push_back(r[d + 1]);
        }
        const Term x = pads ? padded(e, call, std::move(data))
                            : factor(e, call, 0, {std::move(data), {}, {}}, {});
        return x * factor(e, call, 1, {std::move(taps), {}, {}}, o[1]);
      });
  return finished(e, call, stage, at, at.logical[1]);
}

/// An element of a matrix, at the coordinates of the result's batch.
struct Place {
  std::vector<Term> batch;
  Term row, column;
};

/// Argument `i`, matrices in a batch, at that place.
Term matrix(Emitter& e, const CallNode& call, size_t i, bool transposed, Place place,
            const Term& channel = {}) {
  auto& [batch, row, column] = place;
  const Shape& shape = arg_shape(call, i);
  Coords at;
  const size_t dims = shape.size() - 2, skip = batch.size() - dims;
  for (size_t d = 0; d < dims; ++d) at.logical.push_back(shape[d] == 1 ? Term(0) : batch[d + skip]);
  if (transposed) std::swap(row, column);
  at.logical.push_back(std::move(row));
  at.logical.push_back(std::move(column));
  return factor(e, call, i, std::move(at), channel);
}

Term product(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const bool dense = call.op->name.ends_with(".dense");
  const bool transpose_a = !dense && call.attrs.flag("transpose_a"),
             transpose_b = dense || call.attrs.flag("transpose_b");
  const Shape &a = arg_shape(call, 0), &out = call.tensor_type().shape;
  const int64_t k = transpose_a ? a[a.size() - 2] : a.back();
  const std::string stage =
      e.sum_stage(call, 0, out, {k}, [&](const std::vector<Term>& o, const std::vector<Term>& r) {
        if (dense) {
          std::vector<Term> row(o.begin(), o.end() - 1);
          row.push_back(r[0]);
          const Term left = factor(e, call, 0, {std::move(row), {}, {}}, {});
          return left * factor(e, call, 1, {{o.back(), r[0]}, {}, {}}, o.back());
        }
        const std::vector<Term> batch(o.begin(), o.end() - 2);
        const Term left = matrix(e, call, 0, transpose_a, {batch, o[o.size() - 2], r[0]});
        return left * matrix(e, call, 1, transpose_b, {batch, r[0], o.back()}, o.back());
      });
  return finished(e, call, stage, at, at.logical.back());
}

/// A term of the sum is what one byte of codes multiplies.
Term packed_dense(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const int bits = to_int(call.attrs.integer("bits")), each = 8 / bits;
  const int block = to_int(call.attrs.integer("block_size"));
  const int64_t terms = arg_shape(call).back();
  const auto value = [&](size_t i, std::vector<Term> c) {
    return e.value(call.args[i], Coords{std::move(c), {}, {}});
  };
  using Points = std::vector<Term>;
  const std::string stage =
      e.sum_stage(call, 0, call.tensor_type().shape, {terms / block, block / each},
                  [&](const Points& o, const Points& r) {
                    const Term column = o.back(), byte = r[0] * (block / each) + r[1];
                    const Term packed = cast(DType::kInt32, value(1, {byte, column}));
                    Term sum, inputs;
                    for (int i = 0; i < each; ++i) {
                      Points k(o.begin(), o.end() - 1);
                      k.push_back(byte * each + i);
                      const Term x = value(0, std::move(k));
                      Term code = packed;
                      if (i > 0) code = code / (1 << i * bits);
                      if (i + 1 < each) code = code % (1 << bits);
                      const Term product = x * cast(DType::kFloat32, code);
                      sum = i == 0 ? product : sum + product;
                      inputs = i == 0 ? x : inputs + x;
                    }
                    const bool one_zero = arg_shape(call, 3).empty();
                    const Term zero = value(3, one_zero ? Points{} : Points{r[0], column});
                    return (sum - inputs * zero) * value(2, {r[0], column});
                  });
  return load(stage, DType::kFloat32, at.logical);
}
Status check_packed_dense(const CallNode& call) {
  for (const size_t i : {0, 2, 3})
    if (call.args[i]->tensor_type().dtype != DType::kFloat32)
      return unsupported("nn.packed_dense of {}", call.args[i]->type().to_string());
  return {};
}

/// softmax(q · kᵀ * scale + mask) · v; the sum of the exponentials divides the result.
Term attention(Emitter& e, const CallNode& call, size_t, const Coords& at) {
  const Shape &keys = arg_shape(call, 1), &out = call.tensor_type().shape;
  const size_t rank = out.size();
  Shape scores = out;
  scores.back() = keys[keys.size() - 2];
  const auto batch_of = [&](const std::vector<Term>& o) {
    return std::vector<Term>(o.begin(), o.begin() + static_cast<std::ptrdiff_t>(rank) - 2);
  };
  const std::string products = e.sum_stage(
      call, 0, scores, {keys.back()}, [&](const std::vector<Term>& o, const std::vector<Term>& r) {
        const Term q = matrix(e, call, 0, false, {batch_of(o), o[rank - 2], r[0]});
        return q * matrix(e, call, 1, false, {batch_of(o), o[rank - 1], r[0]});
      });
  const auto score = [&](const Coords& c) {
    Term value = read(products, c) * static_cast<float>(call.attrs.real("scale"));
    if (call.args.size() > 3)
      value = value + e.value(call.args[3], broadcast_coords(arg_shape(call, 3), scores, c));
    if (!call.attrs.flag("causal")) return value;
    return select(c.logical[rank - 1] <= c.logical[rank - 2], value, lowest(DType::kFloat32));
  };
  const std::vector<int64_t> last{static_cast<int64_t>(rank) - 1};
  const Stored& largest =
      e.reduce(call, 1, Combine::kMax, scores, last, score, [](const Term& v) { return v; });
  const auto weight = [&](const Coords& c) {
    return exp(score(c) - Emitter::read_kept(largest, last, c));
  };
  const Stored& total =
      e.reduce(call, 2, Combine::kSum, scores, last, weight, [](const Term& v) { return v; });
  const std::string sums = e.sum_stage(
      call, 3, out, {scores.back()}, [&](const std::vector<Term>& o, const std::vector<Term>& r) {
        std::vector<Term> c = o;
        c.back() = r[0];
        return weight({std::move(c), {}, {}}) *
               matrix(e, call, 2, false, {batch_of(o), r[0], o.back()});
      });
  return read(sums, at) / Emitter::read_kept(total, last, at);
}

Status check_product(const CallNode& call) {
  for (size_t i = 0; i < 2; ++i)
    if (arg_shape(call, i).size() < 2 && !call.op->name.ends_with(".dense"))
      return unsupported("{} of a vector", call.op->name);
  const bool integers = std::all_of(call.args.begin(), call.args.end(), [](const Expr& arg) {
    return arg->tensor_type().dtype == DType::kInt32;
  });
  return is_quantised(call) || integers ? Status() : check_float_args(call);
}

}  // namespace

void add_product_rules(EmitTable& table) {
  for (const std::string name : {"nn.conv1d", "nn.conv2d", "nn.conv3d"})
    table[name] = {check_float_args, conv};
  for (const std::string name : {"nn.dense", "nn.matmul", "nn.batch_matmul"})
    table[name] = {check_product, product};
  for (const std::string name : {"qnn.conv1d", "qnn.conv2d", "qnn.conv3d"})
    table[name] = {[](const CallNode&) { return Status(); }, conv};
  for (const std::string name : {"qnn.dense", "qnn.matmul"}) table[name] = {check_product, product};
  table["nn.packed_dense"] = {check_packed_dense, packed_dense};
  table["nn.attention"] = {check_float_args, attention};
}

}  // namespace collage::tensor_program
