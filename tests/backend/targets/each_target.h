// Runs functions on every backend of this build that can run here.
#pragma once

#include <functional>
#include <vector>

#include "backend/backend.h"

namespace collage::testing {

// Calls check(backend, target) for each but the host that is in use by default; for native with
// schedules for AVX2 and for AVX-512 both.
void for_each_target(const std::function<void(const Backend&, const Target&)>& check);

// Compiles every variant that the backend offers for the function, of one result, and runs it on
// each list of inputs. Fails the test where one cannot be compiled. Calls nothing where the backend
// does not take the function.
using CheckRun =
    std::function<void(const Variant&, const std::vector<Tensor>& inputs, const Tensor& got)>;
void run_variants(const Backend& backend, const Target& target, const Function& function,
                  const std::vector<std::vector<Tensor>>& lists, const CheckRun& check);

}  // namespace collage::testing
