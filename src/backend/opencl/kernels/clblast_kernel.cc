#include "backend/opencl/kernels/clblast_kernel.h"

#include "backend/opencl/kernels/device.h"
#include "backend/opencl/kernels/memory.h"
#include "runtime/saved_fields.h"

namespace collage::opencl {
namespace {

using gemm::Operand;
using gemm::Product;
using nlohmann::json;

constexpr char kClblastLoader[] = "opencl.clblast";

CLBlastTranspose transposed(bool yes) { return yes ? CLBlastTransposeYes : CLBlastTransposeNo; }

class ClblastKernel : public Kernel {
 public:
  /// `constants` lie on the host, where they are kept to be saved.
  static Result<std::unique_ptr<ClblastKernel>> make(Product product, gemm::OperandData constants,
                                                     int device) {
    auto kernel = std::unique_ptr<ClblastKernel>(new ClblastKernel);
    kernel->number_ = device;
    kernel->library_ = TRY(clblast());
    kernel->device_ = TRY(Device::open(device));
    kernel->on_device_[0] = TRY(kernel->upload(product.a, constants[0]));
    kernel->on_device_[1] = TRY(kernel->upload(product.b, constants[1]));
    const auto elements = [](const std::vector<int64_t>& offsets) {
      return std::vector<size_t>(offsets.begin(), offsets.end());
    };
    kernel->a_offsets_ = elements(product.a_offsets);
    kernel->b_offsets_ = elements(product.b_offsets);
    const size_t matrix = static_cast<size_t>(product.m) * static_cast<size_t>(product.n);
    for (size_t i = 0; i < product.batch(); ++i) kernel->c_offsets_.push_back(i * matrix);
    kernel->alphas_.assign(product.batch(), product.alpha);
    kernel->betas_.assign(product.batch(), 0.0f);
    kernel->p_ = std::move(product);
    kernel->constants_ = std::move(constants);
    return kernel;
  }

  Status run(const KernelArgs& args) override {
    const cl_mem a = TRY(buffer(p_.a, on_device_[0], args)),
                 b = TRY(buffer(p_.b, on_device_[1], args)),
                 c = TRY(device_->memory().buffer(args.outputs[0], result_bytes()));
    const auto m = static_cast<size_t>(p_.m), n = static_cast<size_t>(p_.n),
               k = static_cast<size_t>(p_.k);
    const size_t a_columns = p_.transpose_a ? m : k, b_columns = p_.transpose_b ? k : n;
    cl_command_queue queue = device_->queue();
    const auto order = CLBlastLayoutRowMajor;
    const CLBlastStatusCode code =
        p_.batch() == 1
            ? library_->gemm(order, transposed(p_.transpose_a), transposed(p_.transpose_b), m, n, k,
                             p_.alpha, a, a_offsets_[0], a_columns, b, b_offsets_[0], b_columns,
                             0.0f, c, 0, n, &queue, nullptr)
            : library_->gemm_batched(order, transposed(p_.transpose_a), transposed(p_.transpose_b),
                                     m, n, k, alphas_.data(), a, a_offsets_.data(), a_columns, b,
                                     b_offsets_.data(), b_columns, betas_.data(), c,
                                     c_offsets_.data(), n, p_.batch(), &queue, nullptr);
    if (code != CLBlastSuccess)
      return internal_error("clblast: a product failed with code {}", static_cast<int>(code));
    return device_->flush();
  }
  Status finish() override { return device_->finish(); }
  size_t constant_bytes() const override { return gemm::constant_bytes(p_); }
  /// Runs share nothing that they change.
  Result<std::shared_ptr<Kernel>> twin() const override { return std::shared_ptr<Kernel>(); }

  Result<SavedKernel> save() const override {
    SavedKernel saved;
    saved.loader = kClblastLoader;
    json description = gemm::saved_product(p_, constants_, saved);
    description["device"] = number_;
    saved.description = description.dump();
    return saved;
  }

  static Result<std::shared_ptr<Kernel>> load(const SavedKernel& saved, int) {
    const json description = TRY(description_object(saved.description));
    const JsonFields fields(description);
    const auto device = static_cast<int>(TRY(fields.integer("device", 0, kMostDevices - 1)));
    gemm::LoadedProduct loaded =
        TRY(gemm::loaded_product(fields, saved, VirtualDevice{kDeviceKind, device, ""}));
    if (loaded.product.addend) return bad_model("clblast: a product with an addend");
    if (loaded.product.batch() == 0) return bad_model("clblast: no product");
    return std::shared_ptr<Kernel>(
        TRY(make(std::move(loaded.product), std::move(loaded.constants), device)));
  }

 private:
  ClblastKernel() = default;

  size_t result_bytes() const {
    return static_cast<size_t>(num_elements(p_.result)) * sizeof(float);
  }

  Result<std::shared_ptr<void>> upload(const Operand& operand,
                                       const std::shared_ptr<const void>& constant) {
    if (!operand.is_constant()) return std::shared_ptr<void>();
    const size_t bytes = operand.bytes();
    std::shared_ptr<void> memory = TRY(device_->memory().allocate(bytes));
    TRY(device_->memory().write(memory.get(), constant.get(), bytes));
    return memory;
  }

  Result<cl_mem> buffer(const Operand& operand, const std::shared_ptr<void>& constant,
                        const KernelArgs& args) const {
    const void* at = operand.is_constant() ? constant.get() : args.inputs[operand.param];
    return device_->memory().buffer(at, operand.bytes());
  }

  const ClBlast* library_ = nullptr;
  Product p_;
  gemm::OperandData constants_;
  std::shared_ptr<void> on_device_[2];
  std::vector<size_t> a_offsets_, b_offsets_, c_offsets_;
  std::vector<float> alphas_, betas_;  // of each product
  int number_ = 0;
  Device* device_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_clblast_kernel(Product product, bool repacked, int device) {
  gemm::OperandData constants = TRY(gemm::kept_constants(product, repacked));
  product.a.constant = product.b.constant = {};
  std::unique_ptr<Kernel> kernel =
      TRY(ClblastKernel::make(std::move(product), std::move(constants), device));
  return kernel;
}

KernelLoader clblast_loader() { return {kClblastLoader, "1", ClblastKernel::load}; }

}  // namespace collage::opencl
