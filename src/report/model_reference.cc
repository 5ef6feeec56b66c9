#include "report/model_reference.h"

#include <fmt/format.h>

#include "passes/widen_halves.h"
#include "verify/quanta.h"

namespace collage {

ModelReference model_reference(const Model& model, double max_error) {
  const internal::ModelImpl& impl = model.impl();
  if (impl.in_halves) {
    const DType half = *coarsest_half(*impl.in_halves);
    const Tolerance tolerance = half_tolerance(half, max_error);
    return {impl.in_halves->main(), tolerance,
            fmt::format("|a-b| <= {:.3g} max|b|, as the model rounds to {}", tolerance.of_largest,
                        dtype_name(half))};
  }
  const Function& main = impl.module.main();
  if (quantises(main)) {
    const Tolerance tolerance = quantised_tolerance(max_error);
    return {
        main, tolerance,
        fmt::format(
            "|a-b| <= {:.3g} max|b| besides what neighbours of its integers change, as the model "
            "rounds to 8 bits",
            tolerance.of_largest)};
  }
  return {main, model_tolerance(max_error),
          max_error > 0 ? fmt::format("|a-b| <= {} max|b|", max_error)
                        : "|a-b| <= 1e-4 max|b| + 1e-3 |b|"};
}

}  // namespace collage
