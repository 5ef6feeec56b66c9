#include "backend/openvino/kernels/openvino_kernel.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "backend/openvino/kernels/forks.h"
#include "backend/openvino/kernels/loaders.h"
#include "runtime/index_check.h"
#include "runtime/saved_fields.h"

namespace collage::openvino {

namespace {

using nlohmann::json;

constexpr char kLoader[] = "openvino";

class OpenVinoKernel : public Kernel {
 public:
  explicit OpenVinoKernel(CompiledFunction function) : f_(std::move(function)) {
    if (!f_.model) return;
    request_ = f_.model.create_infer_request();
    for (const auto& port : f_.model.inputs()) input_ports_.push_back({port});
    for (const auto& port : f_.model.outputs()) output_ports_.push_back({port});
  }

  Status run(const KernelArgs& args) override {
    for (const IndexCheck& check : f_.checks) TRY(run_check(check, args));
    try {
      if (request_) {
        for (size_t i = 0; i < input_ports_.size(); ++i) bind(input_ports_[i], args.inputs[i]);
        for (size_t i = 0; i < f_.results.size(); ++i)
          if (const ResultSource& source = f_.results[i];
              source.kind == ResultSource::Kind::kComputed)
            bind(output_ports_[source.index], args.outputs[i]);
        request_.infer();
      }
    } catch (const std::exception& exception) {
      return internal_error("OpenVINO: {}", exception.what());
    }
    for (size_t i = 0; i < f_.results.size(); ++i) copy_result(i, args);
    return {};
  }

  size_t constant_bytes() const override { return f_.constant_bytes; }
  ThreadUse thread_use() const override { return ThreadUse::kOwnPool; }
  bool twins_take_turns() const override { return static_cast<bool>(f_.model); }  // one stream

  Result<std::shared_ptr<Kernel>> twin() const override {
    try {
      return std::shared_ptr<Kernel>(std::make_shared<OpenVinoKernel>(f_));
    } catch (const std::exception& exception) {
      return internal_error("OpenVINO: {}", exception.what());
    }
  }

  Result<SavedKernel> save() const override {
    SavedKernel saved;
    saved.loader = kLoader;
    json description = {{"precision", f_.precision.get_type_name()},
                        {"constant_bytes", f_.constant_bytes},
                        {"inputs", json::array()},
                        {"outputs", json::array()},
                        {"results", json::array()},
                        {"checks", json::array()}};
    for (const TensorType& type : f_.inputs) description["inputs"].push_back(to_json(type));
    for (const TensorType& type : f_.outputs) description["outputs"].push_back(to_json(type));
    for (const ResultSource& source : f_.results) {
      description["results"].push_back(
          {{"kind", static_cast<int>(source.kind)}, {"index", source.index}});
      if (source.kind == ResultSource::Kind::kConstant) saved.constants.push_back(source.constant);
    }
    for (const IndexCheck& check : f_.checks)
      description["checks"].push_back({{"parameter", check.parameter}, {"extents", check.extents}});
    saved.description = description.dump();
    if (!f_.model) return saved;
    if (f_.blob.bytes > 0) {  // OpenVINO does not read what it exports of an imported model
      saved.objects.push_back(f_.blob);
      return saved;
    }
    try {
      std::ostringstream stream;
      const_cast<ov::CompiledModel&>(f_.model).export_model(stream);  // changes nothing
      auto blob = std::make_shared<const std::string>(std::move(stream).str());
      saved.objects.push_back({{blob, blob->data()}, blob->size()});
    } catch (const std::exception& exception) {
      return unsupported("OpenVINO exports no model: {}", exception.what());
    }
    return saved;
  }

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
    const TensorType& type = f_.inputs[check.parameter];
    const void* data = args.inputs[check.parameter];
    const int64_t count = num_elements(type.shape);
    if (type.dtype == DType::kInt64)
      return check_indices(static_cast<const int64_t*>(data), count, check.extents);
    if (type.dtype == DType::kInt32)
      return check_indices(static_cast<const int32_t*>(data), count, check.extents);
    return {};
  }

  void copy_result(size_t index, const KernelArgs& args) const {
    const ResultSource& source = f_.results[index];
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
        from = source.constant.data.get();
        break;
    }
    std::memcpy(args.outputs[index], from, f_.outputs[index].bytes());
  }

  CompiledFunction f_;
  ov::InferRequest request_;
  std::vector<Port> input_ports_, output_ports_;
};

// Ports that the kernel addresses, as the model has them.
Status check_ports(const CompiledFunction& f) {
  const auto bad = [] { return bad_model("a compiled model that does not fit its description"); };
  if (!f.model) return {};
  if (f.model.inputs().size() != f.inputs.size()) return bad();
  const auto fits = [](const ov::Output<const ov::Node>& port, const TensorType& type) {
    return port.get_partial_shape().is_static() &&
           ov::shape_size(port.get_shape()) * port.get_element_type().size() == type.bytes();
  };
  for (size_t i = 0; i < f.inputs.size(); ++i)
    if (!fits(f.model.inputs()[i], f.inputs[i])) return bad();
  for (size_t i = 0; i < f.results.size(); ++i) {
    const ResultSource& source = f.results[i];
    if (source.kind == ResultSource::Kind::kComputed &&
        (source.index >= f.model.outputs().size() ||
         !fits(f.model.outputs()[source.index], f.outputs[i])))
      return bad();
  }
  return {};
}

Result<CompiledFunction> read_function(const SavedKernel& saved) {
  const json description = TRY(description_object(saved.description));
  const JsonFields fields(description);
  CompiledFunction f;
  f.precision = TRY(fields.text("precision")) == "bf16" ? ov::element::bf16 : ov::element::f32;
  f.constant_bytes = static_cast<size_t>(TRY(fields.integer("constant_bytes", 0, most_bytes())));
  f.inputs = TRY(tensor_types_from(fields, "inputs"));
  f.outputs = TRY(tensor_types_from(fields, "outputs"));
  for (size_t i = 0; i < f.inputs.size(); ++i)
    TRY(saved.buffers.input_holds(i, f.inputs[i].bytes()));
  for (size_t i = 0; i < f.outputs.size(); ++i)
    TRY(saved.buffers.output_holds(i, f.outputs[i].bytes()));
  const json& results = *TRY(fields.array("results"));
  if (results.size() != f.outputs.size()) return bad_model("openvino: results without a type");
  size_t next = 0;
  for (const json& entry : results) {
    const JsonFields own(entry);
    ResultSource& source = f.results.emplace_back();
    source.kind = static_cast<ResultSource::Kind>(TRY(own.integer("kind", 0, 3)));
    source.index = static_cast<size_t>(TRY(own.integer("index", 0, 1 << 20)));
    using Kind = ResultSource::Kind;
    const TensorType& type = f.outputs[f.results.size() - 1];
    const bool there =
        source.kind == Kind::kComputed ? !saved.objects.empty()
        : source.kind == Kind::kParameter
            ? source.index < f.inputs.size() && f.inputs[source.index].bytes() == type.bytes()
        : source.kind == Kind::kResult
            ? source.index < f.results.size() - 1 && f.outputs[source.index].bytes() == type.bytes()
            : next < saved.constants.size() && saved.constants[next].bytes >= type.bytes();
    if (!there) return bad_model("openvino: result {} comes from nowhere", f.results.size() - 1);
    if (source.kind == Kind::kConstant) source.constant = saved.constants[next++];
  }
  for (const json& entry : *TRY(fields.array("checks"))) {
    const JsonFields own(entry);
    IndexCheck& check = f.checks.emplace_back();
    check.parameter = static_cast<size_t>(TRY(own.integer("parameter", 0, 1 << 20)));
    check.extents = TRY(integers_from(own, "extents", 0, most_bytes(), 32));
    if (check.parameter >= f.inputs.size() || check.extents.empty())
      return bad_model("openvino: indices of no parameter");
  }
  return f;
}

Result<std::shared_ptr<Kernel>> load(const SavedKernel& saved, int threads) {
  CompiledFunction f = TRY(read_function(saved));
  try {
    if (!saved.objects.empty()) {
      ov::Core* core = TRY(shared_core());
      f.blob = saved.objects[0];
      const ov::Tensor blob(ov::element::u8, {f.blob.bytes}, const_cast<void*>(f.blob.data.get()));
      f.model = core->import_model(blob, "CPU", compile_settings(f.precision, threads));
    }
    TRY(check_ports(f));
    return std::shared_ptr<Kernel>(make_kernel(std::move(f)));
  } catch (const std::exception& exception) {
    return bad_model("OpenVINO cannot import it: {}", exception.what());
  }
}

}  // namespace

Result<ov::Core*> shared_core() {
  static const Result<ov::Core*> core = []() -> Result<ov::Core*> {
    try {
      auto made = std::make_unique<ov::Core>();
      made->get_property("CPU", ov::device::full_name);  // loads the plugin
      let_workers_sleep_before_forks();
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

ov::AnyMap compile_settings(ov::element::Type precision, int threads) {
  return {
      ov::hint::inference_precision(precision),
      ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY),
      ov::num_streams(1),
      ov::inference_num_threads(threads),
      ov::hint::enable_cpu_pinning(false),
      // It would round what is multiplied with weights of bytes to bytes.
      ov::hint::dynamic_quantization_group_size(0),
  };
}

std::unique_ptr<Kernel> make_kernel(CompiledFunction function) {
  return std::make_unique<OpenVinoKernel>(std::move(function));
}

void register_loaders() {
  register_kernel_loader(
      {kLoader, std::string(ov::get_openvino_version().buildNumber) + "/1", load});
}

}  // namespace collage::openvino
