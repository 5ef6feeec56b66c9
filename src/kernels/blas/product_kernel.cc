#include "kernels/blas/product_kernel.h"

#include <cblas.h>

#include <cstring>

#include "kernels/blas/loaders.h"
#include "kernels/blas/team_turn.h"
#include "ops/strided.h"
#include "runtime/huge_pages.h"
#include "runtime/saved_fields.h"
#include "runtime/shared_constants.h"

namespace collage::blas {
namespace {

using nlohmann::json;

constexpr char kLoader[] = "blas.product";

constexpr size_t kMostDims = 32, kMostProducts = 1 << 24;
constexpr int64_t kMostExtent = int64_t{1} << 30;

/// Products this small leave no work to share inside one.
constexpr double kSmallFlops = 4e6;

/// Whether all matrices lie within their operands and the result, and the addend extends to it.
Status check_extents(const Product& p) {
  const auto reaches = [](const std::vector<int64_t>& offsets, int rows, int columns,
                          const Shape& shape) {
    const int64_t matrix = int64_t{rows} * columns, all = num_elements(shape);
    for (const int64_t offset : offsets)
      if (offset > all || matrix > all - offset) return false;
    return true;
  };
  const int64_t matrix = int64_t{p.m} * p.n, all = num_elements(p.result);
  const auto products = static_cast<int64_t>(p.a_offsets.size());
  if (p.a_offsets.size() != p.b_offsets.size() || !reaches(p.a_offsets, p.m, p.k, p.a.shape) ||
      !reaches(p.b_offsets, p.k, p.n, p.b.shape) || matrix > all ||
      (matrix > 0 && products > all / matrix))
    return bad_model("matrices that lie outside their tensors");
  if (!p.addend) return {};
  const Shape& addend = p.addend->shape;
  bool extends = addend.size() <= p.result.size();
  for (size_t i = 0; extends && i < addend.size(); ++i) {
    const int64_t given = addend[addend.size() - 1 - i], wanted = p.result[p.result.size() - 1 - i];
    extends = given == 1 || given == wanted;
  }
  return extends ? Status() : bad_model("an addend that does not extend to the result");
}

CBLAS_TRANSPOSE transposed(bool yes) { return yes ? CblasTrans : CblasNoTrans; }

class ProductKernel : public Kernel {
 public:
  ProductKernel(Product product, Method method) : p_(std::move(product)), method_(method) {}

  Status prepare() {
    if (method_.repacked) p_.transpose_b = !p_.transpose_b;
    a_ = TRY(keep(p_.a, false));
    b_ = TRY(keep(p_.b, method_.repacked));
    if (p_.addend) {
      addend_ = TRY(keep(*p_.addend, false));
      addend_strides_ = broadcast_strides(p_.addend->shape, p_.result);
    }
    return {};
  }

  Status run(const KernelArgs& args) override {
    auto* c = static_cast<float*>(args.outputs[0]);
    if (p_.addend)
      copy_strided(p_.result, sizeof(float), data(*p_.addend, addend_, args), 0, addend_strides_, c,
                   0, dense_strides(p_.result));
    const float *a = data(p_.a, a_, args), *b = data(p_.b, b_, args);
    const size_t count = p_.batch(), matrix = static_cast<size_t>(p_.m) * static_cast<size_t>(p_.n);
    const auto one = [&](size_t i) {
      multiply(a + p_.a_offsets[i], b + p_.b_offsets[i], c + i * matrix);
    };
    // Not `if (side_by_side)` on one loop: within a region of one thread OpenMP would start new
    // threads for each product.
    if (method_.side_by_side) {
#pragma omp parallel for schedule(static)
      for (size_t i = 0; i < count; ++i) one(i);
    } else {
      for (size_t i = 0; i < count; ++i) one(i);
    }
    return {};
  }
  size_t constant_bytes() const override { return constant_bytes_; }
  Result<std::shared_ptr<Kernel>> twin() const override { return std::shared_ptr<Kernel>(); }

  Result<SavedKernel> save() const override {
    SavedKernel saved;
    saved.loader = kLoader;
    json description = {{"a", saved_operand(p_.a, a_, saved)},
                        {"b", saved_operand(p_.b, b_, saved)},
                        {"alpha", p_.alpha},
                        {"result", p_.result},
                        {"m", p_.m},
                        {"n", p_.n},
                        {"k", p_.k},
                        {"transpose_a", p_.transpose_a},
                        {"transpose_b", p_.transpose_b},
                        {"a_offsets", p_.a_offsets},
                        {"b_offsets", p_.b_offsets},
                        {"vector", method_.vector},
                        {"side_by_side", method_.side_by_side}};
    if (p_.addend) description["addend"] = saved_operand(*p_.addend, addend_, saved);
    saved.description = description.dump();
    return saved;
  }

  static Result<std::shared_ptr<Kernel>> load(const SavedKernel& saved, int) {
    const json description = TRY(description_object(saved.description));
    const JsonFields fields(description);
    Product p;
    std::shared_ptr<const void> kept[3];
    size_t next = 0;
    const auto operand = [&](const char* name, std::shared_ptr<const void>& data,
                             Operand& into) -> Status {
      const JsonFields own(*TRY(fields.object(name)));
      into.param = static_cast<int>(TRY(own.integer("param", -1, 1 << 20)));
      into.shape = TRY(integers_from(own, "shape", 0, most_bytes(), kMostDims));
      const size_t bytes = TRY(bytes_from(into.shape, sizeof(float)));
      if (!into.is_constant())
        return saved.buffers.input_holds(static_cast<size_t>(into.param), bytes);
      if (next >= saved.constants.size() || saved.constants[next].bytes != bytes)
        return bad_model("a constant operand of {} bytes is not there", bytes);
      data = saved.constants[next++].data;
      return {};
    };
    TRY(operand("a", kept[0], p.a));
    TRY(operand("b", kept[1], p.b));
    if (fields.has("addend")) TRY(operand("addend", kept[2], p.addend.emplace()));
    p.alpha = static_cast<float>(TRY(fields.number("alpha", {-1e38, 1e38})));
    p.result = TRY(integers_from(fields, "result", 0, most_bytes(), kMostDims));
    TRY(saved.buffers.output_holds(0, TRY(bytes_from(p.result, sizeof(float)))));
    p.m = static_cast<int>(TRY(fields.integer("m", 0, kMostExtent)));
    p.n = static_cast<int>(TRY(fields.integer("n", 0, kMostExtent)));
    p.k = static_cast<int>(TRY(fields.integer("k", 0, kMostExtent)));
    p.transpose_a = TRY(fields.flag("transpose_a"));
    p.transpose_b = TRY(fields.flag("transpose_b"));
    p.a_offsets = TRY(integers_from(fields, "a_offsets", 0, most_bytes(), kMostProducts));
    p.b_offsets = TRY(integers_from(fields, "b_offsets", 0, most_bytes(), kMostProducts));
    TRY(check_extents(p));
    Method method;  // what was repacked is so
    method.vector = TRY(fields.flag("vector"));
    method.side_by_side = TRY(fields.flag("side_by_side"));
    if (method.vector && p.m != 1) return bad_model("a vector of {} rows", p.m);
    auto kernel = std::make_shared<ProductKernel>(std::move(p), method);
    kernel->a_ = kept[0], kernel->b_ = kept[1], kernel->addend_ = kept[2];
    if (kernel->p_.addend)
      kernel->addend_strides_ = broadcast_strides(kernel->p_.addend->shape, kernel->p_.result);
    for (const SharedBytes& constant : saved.constants) kernel->constant_bytes_ += constant.bytes;
    return std::shared_ptr<Kernel>(std::move(kernel));
  }

 private:
  static json saved_operand(const Operand& operand, const std::shared_ptr<const void>& data,
                            SavedKernel& saved) {
    if (operand.is_constant())
      saved.constants.push_back(
          {data, static_cast<size_t>(num_elements(operand.shape)) * sizeof(float)});
    return {{"param", operand.param}, {"shape", operand.shape}};
  }

  void multiply(const float* a, const float* b, float* c) const {
    const auto turn = turn_at_team();
    const float beta = p_.addend ? 1.0f : 0.0f;
    const int b_columns = p_.transpose_b ? p_.k : p_.n;
    if (method_.vector) {
      cblas_sgemv(CblasRowMajor, transposed(!p_.transpose_b), p_.transpose_b ? p_.n : p_.k,
                  b_columns, p_.alpha, b, b_columns, a, 1, beta, c, 1);
      return;
    }
    cblas_sgemm(CblasRowMajor, transposed(p_.transpose_a), transposed(p_.transpose_b), p_.m, p_.n,
                p_.k, p_.alpha, a, p_.transpose_a ? p_.m : p_.k, b, b_columns, beta, c, p_.n);
  }

  /// A copy of a constant on huge pages; its matrices the other way round where `flip`.
  Result<std::shared_ptr<const void>> keep(const Operand& operand, bool flip) {
    if (!operand.is_constant()) return std::shared_ptr<const void>();
    const Tensor& constant = operand.constant;
    std::shared_ptr<void> copy = TRY(allocate_on_huge_pages(constant.bytes()));
    if (flip) {
      const Shape& shape = operand.shape;
      Ints strides = dense_strides(shape);
      Shape extents = shape;
      std::swap(strides[shape.size() - 1], strides[shape.size() - 2]);
      std::swap(extents[shape.size() - 1], extents[shape.size() - 2]);
      copy_strided(extents, sizeof(float), constant.raw(), 0, strides, copy.get(), 0,
                   dense_strides(extents));
    } else {
      std::memcpy(copy.get(), constant.raw(), constant.bytes());
    }
    constant_bytes_ += constant.bytes();
    return shared_constant({std::move(copy), constant.bytes()}).data;
  }

  static const float* data(const Operand& operand, const std::shared_ptr<const void>& kept,
                           const KernelArgs& args) {
    return static_cast<const float*>(operand.is_constant() ? kept.get()
                                                           : args.inputs[operand.param]);
  }

  Product p_;
  Method method_;
  std::shared_ptr<const void> a_, b_, addend_;
  Ints addend_strides_;
  size_t constant_bytes_ = 0;
};

}  // namespace

std::string Method::to_string() const {
  return std::string(vector ? "sgemv" : "sgemm") + (repacked ? " repacked" : "") +
         (side_by_side ? " side by side" : "");
}

std::vector<Method> methods(const Product& p, int threads) {
  std::vector<Method> found;
  const bool side_by_side = p.batch() > 1 && threads > 1 && 2.0 * p.m * p.n * p.k < kSmallFlops;
  for (bool repacked : {false, true}) {
    if (repacked && !p.b.is_constant()) continue;
    if (p.m == 1) found.push_back({repacked, true, side_by_side});
    found.push_back({repacked, false, side_by_side});
  }
  return found;
}

Result<std::unique_ptr<Kernel>> make_product_kernel(Product product, const Method& method) {
  auto kernel = std::make_unique<ProductKernel>(std::move(product), method);
  TRY(kernel->prepare());
  return std::unique_ptr<Kernel>(std::move(kernel));
}

void register_loaders() { register_kernel_loader({kLoader, "1", ProductKernel::load}); }

}  // namespace collage::blas
