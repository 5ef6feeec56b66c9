#include "backend/blas/product_kernel.h"

#include <cblas.h>

#include <cstring>

#include "backend/blas/team_turn.h"
#include "ops/strided.h"
#include "runtime/huge_pages.h"

namespace collage::blas {
namespace {

/// Products this small leave no work to share inside one.
constexpr double kSmallFlops = 4e6;

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

 private:
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
  Result<std::shared_ptr<void>> keep(const Operand& operand, bool flip) {
    if (!operand.is_constant()) return std::shared_ptr<void>();
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
    return copy;
  }

  static const float* data(const Operand& operand, const std::shared_ptr<void>& kept,
                           const KernelArgs& args) {
    return static_cast<const float*>(operand.is_constant() ? kept.get()
                                                           : args.inputs[operand.param]);
  }

  Product p_;
  Method method_;
  std::shared_ptr<void> a_, b_, addend_;
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

}  // namespace collage::blas
