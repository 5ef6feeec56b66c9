#include "backend/blas/kernels/product_kernel.h"

#include "backend/blas/kernels/loaders.h"
#include "backend/blas/kernels/openblas.h"
#include "backend/blas/kernels/team_turn.h"
#include "ops/strided.h"
#include "runtime/saved_fields.h"

namespace collage::blas {
namespace {

using nlohmann::json;

constexpr char kLoader[] = "blas.product";

/// Products this small leave no work to share inside one.
constexpr double kSmallFlops = 4e6;

CBLAS_TRANSPOSE transposed(bool yes) { return yes ? CblasTrans : CblasNoTrans; }

class ProductKernel : public Kernel {
 public:
  ProductKernel(const OpenBlas& library, Product product, Method method)
      : library_(library), p_(std::move(product)), method_(method) {}

  Status prepare() {
    constants_ = TRY(gemm::kept_constants(p_, method_.repacked));
    if (p_.addend) addend_strides_ = gemm::addend_strides(p_);
    return {};
  }

  Status run(const KernelArgs& args) override {
    auto* c = static_cast<float*>(args.outputs[0]);
    if (p_.addend)
      copy_strided(p_.result, sizeof(float),
                   {data(*p_.addend, constants_[2], args), 0, addend_strides_},
                   {c, 0, dense_strides(p_.result)});
    const float *a = data(p_.a, constants_[0], args), *b = data(p_.b, constants_[1], args);
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
  size_t constant_bytes() const override { return gemm::constant_bytes(p_); }
  Result<std::shared_ptr<Kernel>> twin() const override { return std::shared_ptr<Kernel>(); }

  Result<SavedKernel> save() const override {
    SavedKernel saved;
    saved.loader = kLoader;
    json description = gemm::saved_product(p_, constants_, saved);
    description["vector"] = method_.vector;
    description["side_by_side"] = method_.side_by_side;
    saved.description = description.dump();
    return saved;
  }

  static Result<std::shared_ptr<Kernel>> load(const SavedKernel& saved, int) {
    const json description = TRY(description_object(saved.description));
    const JsonFields fields(description);
    gemm::LoadedProduct loaded = TRY(gemm::loaded_product(fields, saved));
    Method method;  // what was repacked is so
    method.vector = TRY(fields.flag("vector"));
    method.side_by_side = TRY(fields.flag("side_by_side"));
    if (method.vector && loaded.product.m != 1)
      return bad_model("a vector of {} rows", loaded.product.m);
    auto kernel =
        std::make_shared<ProductKernel>(*TRY(openblas()), std::move(loaded.product), method);
    kernel->constants_ = std::move(loaded.constants);
    if (kernel->p_.addend) kernel->addend_strides_ = gemm::addend_strides(kernel->p_);
    return std::shared_ptr<Kernel>(std::move(kernel));
  }

 private:
  void multiply(const float* a, const float* b, float* c) const {
    const auto turn = turn_at_team();
    const float beta = p_.addend ? 1.0f : 0.0f;
    const int b_columns = p_.transpose_b ? p_.k : p_.n;
    if (method_.vector) {
      library_.sgemv(CblasRowMajor, transposed(!p_.transpose_b), p_.transpose_b ? p_.n : p_.k,
                     b_columns, p_.alpha, b, b_columns, a, 1, beta, c, 1);
      return;
    }
    library_.sgemm(CblasRowMajor, transposed(p_.transpose_a), transposed(p_.transpose_b), p_.m,
                   p_.n, p_.k, p_.alpha, a, p_.transpose_a ? p_.m : p_.k, b, b_columns, beta, c,
                   p_.n);
  }

  static const float* data(const Operand& operand, const std::shared_ptr<const void>& kept,
                           const KernelArgs& args) {
    return static_cast<const float*>(operand.is_constant() ? kept.get()
                                                           : args.inputs[operand.param]);
  }

  const OpenBlas& library_;
  Product p_;
  Method method_;
  gemm::OperandData constants_;
  Ints addend_strides_;
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
  auto kernel = std::make_unique<ProductKernel>(*TRY(openblas()), std::move(product), method);
  TRY(kernel->prepare());
  return std::unique_ptr<Kernel>(std::move(kernel));
}

void register_loaders() { register_kernel_loader({kLoader, "1", ProductKernel::load}); }

}  // namespace collage::blas
