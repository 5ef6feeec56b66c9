#include "backend/onednn/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <unordered_map>

#include "backend/onednn/onednn_backend.h"
#include "ir/op.h"
#include "ir/visitor.h"
#include "ops/half.h"
#include "ops/registry.h"

namespace collage::testing {

namespace {

const Backend& backend() {
  static const Backend* instance = [] {
    register_all_ops();
    return make_onednn_backend().release();
  }();
  return *instance;
}

CompileOptions two_threads() {
  CompileOptions options;
  options.threads = 2;
  return options;
}

// A buffer with 64 canary bytes on either side.
class Guarded {
 public:
  explicit Guarded(size_t bytes) : bytes_(bytes), storage_(bytes + 256, kCanary) {
    size_t misalignment = reinterpret_cast<uintptr_t>(storage_.data()) % 64;
    offset_ = 128 - misalignment;
  }
  char* data() { return storage_.data() + offset_; }
  bool intact() const {
    for (size_t i = 0; i < storage_.size(); ++i)
      if ((i < offset_ || i >= offset_ + bytes_) && storage_[i] != kCanary) return false;
    return true;
  }

 private:
  static constexpr char kCanary = 0x5a;
  size_t bytes_, offset_;
  std::vector<char> storage_;
};

// Calls body(plain offset, offset in the layout) for every element.
template <typename Body>
void for_each_element(const Shape& shape, const Layout& layout, Body body) {
  Shape index(shape.size(), 0);
  for (int64_t i = 0, n = num_elements(shape); i < n; ++i) {
    body(i, layout.offset(shape, index));
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

// Elements of a buffer, in the encoding's type.
float load(const Encoding& encoding, const char* from, int64_t at) {
  if (encoding.dtype == DType::kFloat32) return reinterpret_cast<const float*>(from)[at];
  return half_to_float(reinterpret_cast<const uint16_t*>(from)[at], encoding.dtype);
}
void store(const Encoding& encoding, char* to, int64_t at, float value) {
  if (encoding.dtype == DType::kFloat32) {
    reinterpret_cast<float*>(to)[at] = value;
  } else {
    reinterpret_cast<uint16_t*>(to)[at] = float_to_half(value, encoding.dtype);
  }
}

size_t bytes_of(const Shape& shape, const Encoding& encoding) {
  return encoding.layout.physical_bytes(shape, encoding.dtype);
}

void pack(const Tensor& tensor, const Encoding& encoding, char* to) {
  std::memset(to, 0, bytes_of(tensor.shape(), encoding));
  for_each_element(tensor.shape(), encoding.layout, [&](int64_t plain, int64_t at) {
    store(encoding, to, at, tensor.data<float>()[plain]);
  });
}

void compare(const Tensor& expected, const Encoding& encoding, const char* from, double tolerance) {
  double square = 0;
  for (float v : expected.values<float>())
    if (std::isfinite(v)) square += static_cast<double>(v) * v;
  double limit = tolerance * (std::sqrt(square / static_cast<double>(expected.size())) + 1e-6);
  std::vector<bool> written(bytes_of(expected.shape(), encoding) / dtype_size(encoding.dtype),
                            false);
  int64_t wrong = 0;
  double worst = 0;
  for_each_element(expected.shape(), encoding.layout, [&](int64_t plain, int64_t at) {
    written[static_cast<size_t>(at)] = true;
    double a = expected.data<float>()[plain], b = load(encoding, from, at);
    if (std::isinf(a) && a == b) return;
    double error = std::abs(a - b);
    if (!(error <= limit + std::max(1e-5, tolerance / 2) * std::abs(a))) ++wrong;
    if (!(error <= worst)) worst = error;
  });
  EXPECT_EQ(wrong, 0) << "largest error " << worst << ", allowed " << limit;
  int64_t dirty = 0;
  for (size_t i = 0; i < written.size(); ++i)
    dirty += !written[i] && load(encoding, from, static_cast<int64_t>(i)) != 0.f;
  EXPECT_EQ(dirty, 0) << "elements of the padding are not zero";
}

void run_variant(const Function& function, const Variant& variant,
                 const std::vector<Tensor>& inputs, const Tensor& expected, double tolerance) {
  SCOPED_TRACE(variant.to_string());
  Target target;
  target.kind = "onednn";
  auto kernel = backend().compile(function, variant, target, two_threads());
  ASSERT_TRUE(kernel.ok()) << kernel.status().to_string();
  // Twice, the second time on other buffers.
  for (int run = 0; run < 2; ++run) {
    std::vector<Guarded> buffers;
    std::vector<std::vector<char>> packed;
    std::vector<void*> in;
    for (size_t i = 0; i < inputs.size(); ++i) {
      size_t bytes = bytes_of(inputs[i].shape(), variant.inputs[i]);
      buffers.emplace_back(bytes);
      pack(inputs[i], variant.inputs[i], buffers.back().data());
      packed.emplace_back(buffers.back().data(), buffers.back().data() + bytes);
      in.push_back(buffers.back().data());
    }
    const size_t bytes = bytes_of(expected.shape(), variant.outputs[0]);
    Guarded output(bytes);
    std::memset(output.data(), 0xff, bytes);
    Guarded workspace((*kernel)->workspace_bytes());
    void* out = output.data();
    Status status = (*kernel)->run({in.data(), &out, workspace.data()});
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_TRUE(output.intact()) << "wrote beside its output";
    EXPECT_TRUE(workspace.intact()) << "wrote beside its workspace";
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_TRUE(buffers[i].intact()) << "wrote beside input " << i;
      EXPECT_EQ(std::memcmp(in[i], packed[i].data(), packed[i].size()), 0) << "wrote input " << i;
    }
    compare(expected, variant.outputs[0], output.data(), tolerance);
  }
}

}  // namespace

Tensor random_tensor(Shape shape, uint64_t seed, double scale, double offset) {
  Tensor tensor = Tensor::empty(DType::kFloat32, std::move(shape));
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data<float>()[i] = static_cast<float>(offset + scale * uniform(engine));
  return tensor;
}

Expr Graph::input(Shape shape) {
  params_.push_back(make_var("x" + std::to_string(params_.size()),
                             TensorType{std::move(shape), DType::kFloat32}));
  return params_.back();
}

Expr Graph::constant(Shape shape, double scale, double offset) {
  return make_constant(random_tensor(std::move(shape), ++seed_, scale, offset));
}

Expr Graph::scalar(float value) { return make_constant(Tensor::scalar<float>(value)); }

Expr Graph::call(std::string_view op, std::vector<Expr> args, Attrs attrs) {
  backend();
  Result<Expr> call = make_call(op, std::move(args), std::move(attrs));
  EXPECT_TRUE(call.ok()) << call.status().to_string();
  return call.value();
}

Tensor evaluate(const Function& function, const std::vector<Tensor>& inputs) {
  std::unordered_map<const ExprNode*, std::vector<Tensor>> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[function->params[i].get()] = {inputs[i]};
  for (const Expr& expr : post_order(function->body)) {
    if (values.count(expr.get()) != 0) continue;
    if (auto* constant = as<ConstantNode>(expr)) {
      values[expr.get()] = {constant->value};
      continue;
    }
    std::vector<Tensor> in;
    for (const Expr& input : expr_inputs(expr))
      for (const Tensor& tensor : values.at(input.get())) in.push_back(tensor);
    if (expr->kind() == ExprKind::kTuple) {
      values[expr.get()] = in;
      continue;
    }
    const auto* call = as<CallNode>(expr);
    std::vector<Tensor> out;
    for (const TensorType& leaf : expr->type().leaves())
      out.push_back(Tensor::empty(leaf.dtype, leaf.shape));
    Status status = call->op->reference(in, call->attrs, out);
    EXPECT_TRUE(status.ok()) << status.to_string();
    values[expr.get()] = out;
  }
  return values.at(function->body.get())[0];
}

Checked check(const Function& function, double tolerance) {
  Checked checked;
  Target target;
  target.kind = "onednn";
  auto variants = backend().variants(function, target, two_threads());
  EXPECT_TRUE(variants.ok()) << variants.status().to_string();
  if (!variants.ok()) return checked;
  EXPECT_FALSE(variants->empty());
  std::vector<Tensor> inputs;
  for (const Expr& param : function->params)
    inputs.push_back(random_tensor(param->tensor_type().shape, 100 + inputs.size(), 2));
  Tensor expected = evaluate(function, inputs);
  for (const Variant& variant : *variants) {
    run_variant(function, variant, inputs, expected, tolerance);
    EXPECT_EQ(variant.relaxed, variant.name.starts_with("winograd")) << variant.to_string();
    checked.names.insert(variant.name);
    checked.layouts.insert(variant.outputs[0].layout.to_string());
    checked.variants.push_back(variant.to_string());
  }
  return checked;
}

std::optional<Checked> check_lowered(const Function& function, double tolerance) {
  if (!backend().lowers()) return std::nullopt;
  Target target;
  target.kind = "onednn";
  Checked checked;
  auto variants = backend().lowered_variants(function, target, two_threads());
  EXPECT_TRUE(variants.ok()) << variants.status().to_string();
  if (!variants.ok()) return checked;
  std::vector<Tensor> inputs, rounded;
  for (const Expr& param : function->params) {
    inputs.push_back(random_tensor(param->tensor_type().shape, 100 + inputs.size(), 2));
    rounded.push_back(inputs.back().clone());
    float* values = rounded.back().data<float>();
    for (int64_t i = 0; i < rounded.back().size(); ++i)
      values[i] = half_to_float(float_to_half(values[i], DType::kBFloat16), DType::kBFloat16);
  }
  Tensor expected = evaluate(function, inputs);
  for (const Variant& variant : *variants) {
    EXPECT_TRUE(variant.lowered && !variant.relaxed) << variant.to_string();
    // Two products lose nothing of the weights, three nothing of the source either.
    if (variant.name.starts_with("bf16x2") && variant.outputs[0].dtype == DType::kFloat32) {
      run_variant(function, variant, rounded, evaluate(function, rounded), 1e-4);
    } else {
      bool split = variant.name.starts_with("bf16x3");
      run_variant(function, variant, inputs, expected, split ? 1e-4 : tolerance);
    }
    checked.names.insert(variant.name);
    checked.layouts.insert(variant.outputs[0].to_string());
    checked.variants.push_back(variant.to_string());
  }
  return checked;
}

std::string refusal(const Function& function) {
  Target target;
  target.kind = "onednn";
  auto variants = backend().variants(function, target, two_threads());
  EXPECT_FALSE(variants.ok());
  return variants.ok() ? "" : variants.status().to_string();
}

}  // namespace collage::testing
