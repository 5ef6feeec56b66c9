#include "report/model_reference.h"

#include <fmt/format.h>

#include "passes/widen_halves.h"
#include "verify/quantisation_steps.h"

namespace collage {

ModelReference model_reference(const Model& model, double max_error) {
  const internal::ModelImpl& impl = model.impl();
  if (impl.in_halves) {
    const DType half = *coarsest_half(*impl.in_halves);
    const Tolerance tolerance = half_tolerance(half, max_error);
    return {impl.in_halves->main(), tolerance, tolerance,
            fmt::format("|a-b| <= {:.3g} s, as the model rounds to {}", tolerance.of_scale,
                        dtype_name(half))};
  }
  const Function& main = impl.module.main();
  const Tolerance tolerance = model_tolerance(max_error);
  const std::string bound =
      max_error > 0 ? fmt::format("|a-b| <= {} s", max_error) : "|a-b| <= 1e-4 s + 1e-3 |b|";
  if (quantises(main))
    return {main, tolerance, quantised_tolerance(max_error),
            bound + ", and what neighbours of its integers change"};
  return {main, tolerance, tolerance, bound};
}

}  // namespace collage
