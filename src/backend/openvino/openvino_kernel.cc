#include "backend/openvino/openvino_kernel.h"

#include <algorithm>
#include <cstring>
#include <openvino/op/constant.hpp>

#include "ir/visitor.h"

namespace collage::openvino {

namespace {

template <typename T>
Status check_indices(const T* values, int64_t count, const Ints& extents) {
  const size_t period = extents.size();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t extent = extents[static_cast<size_t>(i) % period];
    const auto index = static_cast<int64_t>(values[i]);
    if (index < -extent || index >= extent)
      return bad_model("index {} is out of range for extent {}", index, extent);
  }
  return {};
}

class OpenVinoKernel : public Kernel {
 public:
  OpenVinoKernel(const Function& function, Translation translation)
      : translation_(std::move(translation)) {
    for (const Expr& param : function->params) inputs_.push_back(param->tensor_type());
    outputs_ = function->result_type().leaves();
  }

  void compile(ov::Core& core, ov::element::Type precision, int threads) {
    if (translation_.model == nullptr) return;
    ov::AnyMap config = {
        ov::hint::inference_precision(precision),
        ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY),
        ov::num_streams(1),
        ov::inference_num_threads(threads),
        ov::hint::enable_cpu_pinning(false),
        ov::cache_dir(""),
    };
    compiled_ = core.compile_model(translation_.model, "CPU", config);
    request_ = compiled_.create_infer_request();
    for (const auto& port : compiled_.inputs()) input_ports_.push_back({port});
    for (const auto& port : compiled_.outputs()) output_ports_.push_back({port});
    // The compiled model keeps what it needs of the constants.
    translation_.model = nullptr;
  }

  Status run(const KernelArgs& args) override {
    for (const IndexCheck& check : translation_.checks) TRY(run_check(check, args));
    try {
      if (request_) {
        for (size_t i = 0; i < input_ports_.size(); ++i) bind(input_ports_[i], args.inputs[i]);
        for (size_t i = 0; i < translation_.results.size(); ++i)
          if (const ResultSource& source = translation_.results[i];
              source.kind == ResultSource::Kind::kComputed)
            bind(output_ports_[source.index], args.outputs[i]);
        request_.infer();
      }
    } catch (const std::exception& exception) {
      return internal_error("OpenVINO: {}", exception.what());
    }
    for (size_t i = 0; i < translation_.results.size(); ++i) copy_result(i, args);
    return {};
  }

  size_t constant_bytes() const override { return translation_.constant_bytes; }
  ThreadUse thread_use() const override { return ThreadUse::kOwnPool; }

 private:
  struct Port {
    ov::Output<const ov::Node> port;
    void* bound = nullptr;
  };

  void bind(Port& port, void* data) {
    if (port.bound == data) return;
    request_.set_tensor(port.port,
                        ov::Tensor(port.port.get_element_type(), port.port.get_shape(), data));
    port.bound = data;
  }

  Status run_check(const IndexCheck& check, const KernelArgs& args) const {
    const TensorType& type = inputs_[check.parameter];
    const void* data = args.inputs[check.parameter];
    const int64_t count = num_elements(type.shape);
    if (type.dtype == DType::kInt64)
      return check_indices(static_cast<const int64_t*>(data), count, check.extents);
    if (type.dtype == DType::kInt32)
      return check_indices(static_cast<const int32_t*>(data), count, check.extents);
    return {};
  }

  void copy_result(size_t index, const KernelArgs& args) const {
    const ResultSource& source = translation_.results[index];
    const void* from = nullptr;
    switch (source.kind) {
      case ResultSource::Kind::kComputed:
        return;
      case ResultSource::Kind::kParameter:
        from = args.inputs[source.index];
        break;
      case ResultSource::Kind::kResult:
        from = args.outputs[source.index];
        break;
      case ResultSource::Kind::kConstant:
        from = static_cast<const ov::op::v0::Constant&>(*source.constant).get_data_ptr();
        break;
    }
    std::memcpy(args.outputs[index], from, outputs_[index].bytes());
  }

  Translation translation_;
  std::vector<TensorType> inputs_, outputs_;
  ov::CompiledModel compiled_;
  ov::InferRequest request_;
  std::vector<Port> input_ports_, output_ports_;
};

}  // namespace

Result<ov::Core*> shared_core() {
  static const Result<ov::Core*> core = []() -> Result<ov::Core*> {
    try {
      auto made = std::make_unique<ov::Core>();
      made->get_property("CPU", ov::device::full_name);  // loads the plugin
      return made.release();
    } catch (const std::exception& exception) {
      return error(ErrorCode::kUnavailable, "OpenVINO's CPU plugin does not load: {}",
                   exception.what());
    }
  }();
  return core;
}

bool has_bf16() {
  static const bool has = [] {
    Result<ov::Core*> core = shared_core();
    if (!core) return false;
    try {
      std::vector<std::string> all = (*core)->get_property("CPU", ov::device::capabilities);
      return std::find(all.begin(), all.end(), ov::device::capability::BF16) != all.end();
    } catch (const std::exception&) {
      return false;
    }
  }();
  return has;
}

Result<std::unique_ptr<Kernel>> compile_kernel(const Function& function,
                                               ov::element::Type precision, int threads) {
  ov::Core* core = TRY(shared_core());
  Function flat = TRY(inline_calls(function));
  auto kernel = std::make_unique<OpenVinoKernel>(flat, TRY(translate(flat)));
  try {
    kernel->compile(*core, precision, threads);
  } catch (const std::exception& exception) {
    return unsupported("OpenVINO cannot compile it: {}", exception.what());
  }
  return Result<std::unique_ptr<Kernel>>(std::move(kernel));
}

}  // namespace collage::openvino
