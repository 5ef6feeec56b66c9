#include "backend/recurrent/kernels/layer_kernel.h"

#include <omp.h>

#include <algorithm>

#include "backend/recurrent/kernels/loaders.h"
#include "runtime/saved_fields.h"

namespace collage::recurrent {
namespace {

using nlohmann::json;

constexpr char kLoader[] = "recurrent.layer";
constexpr int64_t kMostExtent = 1 << 24, kMostFloats = int64_t{1} << 40;

size_t bytes_of(int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); }

int64_t state_floats(const Layer& layer) { return layer.directions * layer.batch * layer.hidden; }

class LayerKernel : public Kernel {
 public:
  LayerKernel(LayerCode code, const PanelCode& panels, int threads)
      : code_(std::move(code)), panels_(panels), threads_(threads) {}

  Status run(const KernelArgs& args) override {
    const Layer& layer = code_.layer;
    size_t input = 0;
    const auto next = [&](const SharedBytes& constant) {
      return static_cast<const float*>(constant.data ? constant.data.get() : args.inputs[input++]);
    };
    Arrays arrays;
    arrays.packed = static_cast<const float*>(code_.packed.data.get());
    arrays.data = next({});
    arrays.h0 = next(code_.h0);
    if (layer.gates == 4) arrays.c0 = next(code_.c0);
    arrays.y = static_cast<float*>(args.outputs[0]);
    arrays.h = static_cast<float*>(args.outputs[1]);
    if (layer.gates == 4) arrays.c = static_cast<float*>(args.outputs[2]);
    arrays.workspace = static_cast<float*>(args.workspace);
#pragma omp parallel num_threads(threads_)
    compute(arrays, omp_get_thread_num(), omp_get_num_threads());
    return {};
  }

  size_t workspace_bytes() const override { return bytes_of(code_.layer.workspace_floats()); }
  size_t constant_bytes() const override { return code_.packed.bytes; }
  Result<std::shared_ptr<Kernel>> twin() const override { return std::shared_ptr<Kernel>(); }

  Result<SavedKernel> save() const override {
    const Layer& layer = code_.layer;
    SavedKernel saved{kLoader,
                      json{{"gates", layer.gates},
                           {"directions", layer.directions},
                           {"steps", layer.steps},
                           {"batch", layer.batch},
                           {"inputs", layer.inputs},
                           {"hidden", layer.hidden},
                           {"reverse", layer.reverse},
                           {"relu", layer.relu},
                           {"wide", code_.wide},
                           {"constant_h0", code_.h0.data != nullptr},
                           {"constant_c0", code_.c0.data != nullptr}}
                          .dump(),
                      {code_.packed},
                      {}};
    for (const SharedBytes& state : {code_.h0, code_.c0})
      if (state.data != nullptr) saved.constants.push_back(state);
    return saved;
  }

 private:
  void compute(const Arrays& arrays, int64_t thread, int64_t team) const {
    const Layer& layer = code_.layer;
    const int64_t panels = layer.directions * layer.panels(), begin = panels * thread / team,
                  end = panels * (thread + 1) / team;
    for (int64_t panel = begin; panel < end; ++panel) panels_.begin(layer, arrays, panel);
    for (int64_t step = 0; step < layer.steps; ++step) {
      const int64_t first = step - step % layer.chunk();
      if (step == first)
        for (int64_t panel = begin; panel < end; ++panel)
          panels_.multiply(layer, arrays, panel, first,
                           std::min(layer.chunk(), layer.steps - first));
#pragma omp barrier
      for (int64_t panel = begin; panel < end; ++panel)
        panels_.advance(layer, arrays, panel, first, step);
    }
  }

  const LayerCode code_;
  const PanelCode& panels_;
  const int threads_;
};

Result<std::shared_ptr<Kernel>> load_layer(const SavedKernel& saved, int threads) {
  const json description = TRY(description_object(saved.description));
  const JsonFields fields(description);
  LayerCode code;
  Layer& layer = code.layer;
  layer.gates = TRY(fields.integer("gates", 1, 4));
  if (layer.gates == 2) return bad_model("recurrent: 2 gates");
  layer.directions = TRY(fields.integer("directions", 1, 2));
  layer.steps = TRY(fields.integer("steps", 1, kMostExtent));
  layer.batch = TRY(fields.integer("batch", 1, kMostExtent));
  layer.inputs = TRY(fields.integer("inputs", 1, kMostExtent));
  layer.hidden = TRY(fields.integer("hidden", 1, kMostExtent));
  layer.reverse = TRY(fields.flag("reverse"));
  layer.relu = TRY(fields.flag("relu"));
  code.wide = TRY(fields.flag("wide"));
  // That nothing which is computed of them is too large.
  const int64_t most =
      std::max(TRY(checked_num_elements({2, layer.batch, layer.padded(), layer.width()})),
               std::max(TRY(checked_num_elements({layer.steps, layer.batch, layer.inputs})),
                        TRY(checked_num_elements({layer.steps, 2, layer.batch, layer.padded()}))));
  if (most > kMostFloats ||
      TRY(checked_num_elements(
          {2, layer.padded(), layer.width(), layer.inputs + layer.hidden + 2})) > kMostFloats)
    return bad_model("recurrent: a layer of {} elements", most);
  size_t constant = 0, input = 0;
  const auto take = [&](SharedBytes& into, int64_t floats) -> Status {
    if (constant >= saved.constants.size() || saved.constants[constant].bytes != bytes_of(floats))
      return bad_model("recurrent: a constant of {} floats is not there", floats);
    into = saved.constants[constant++];
    return {};
  };
  const int64_t state = state_floats(layer);
  const auto take_state = [&](SharedBytes& into, const char* is_constant) -> Status {
    if (TRY(fields.flag(is_constant))) return take(into, state);
    return saved.buffers.input_holds(input++, bytes_of(state));
  };
  TRY(take(code.packed, layer.packed_floats()));
  TRY(saved.buffers.input_holds(input++, bytes_of(layer.steps * layer.batch * layer.inputs)));
  TRY(take_state(code.h0, "constant_h0"));
  if (layer.gates == 4) TRY(take_state(code.c0, "constant_c0"));
  TRY(saved.buffers.output_holds(0, bytes_of(layer.steps * state)));
  for (size_t output = 1; output < (layer.gates == 4 ? 3 : 2); ++output)
    TRY(saved.buffers.output_holds(output, bytes_of(state)));
  return std::shared_ptr<Kernel>(TRY(make_layer_kernel(std::move(code), threads)));
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_layer_kernel(LayerCode code, int threads) {
  const PanelCode* panels = panel_code(code.layer.gates, code.wide);
  if (panels == nullptr) panels = panel_code(code.layer.gates, false);
  if (panels == nullptr) return error(ErrorCode::kUnavailable, "recurrent: needs AVX2 and FMA");
  return std::unique_ptr<Kernel>(std::make_unique<LayerKernel>(std::move(code), *panels, threads));
}

void register_loaders() { register_kernel_loader({kLoader, "1", load_layer}); }

}  // namespace collage::recurrent
