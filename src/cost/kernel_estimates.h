// KernelEstimates: what kernels take that nobody measured on this processor, by how much of a
// machine's speed kernels like them reached where they were measured:
//
//   seconds = c + a * operations / float32 + b * activations / float32 + d * constants / memory
//
// with the coefficients of the target, family of functions and algorithm, or of the next wider of
// these that enough kernels were seen of. A family is the function's heaviest operator, told apart
// by shape. Coefficients are never negative, and least in relative errors.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/variant.h"
#include "base/json_fields.h"
#include "ir/expr.h"
#include "measure/cost.h"
#include "measure/machine_speed.h"

namespace collage {

// What the time of a kernel depends on.
struct KernelWork {
  std::string family;
  double operations = 0;                  // a multiply-add as two, as many as its algorithm does
  double activations = 0, constants = 0;  // bytes; all count as activations where caches are warm
};
KernelWork work_of(const Function& function, const Variant& variant, CacheState cache);
// Of a change of encoding.
KernelWork work_of(const TensorType& type, const Encoding& from, const Encoding& to);

class KernelEstimates {
 public:
  struct Sample {
    std::string target, algorithm;
    KernelWork work;
    double seconds = 0;
  };
  // By kernels that were measured on a machine of that speed.
  static KernelEstimates fit(const std::vector<Sample>& samples, const MachineSpeed& speed);

  // On a machine of that speed; none: nothing like it was measured.
  std::optional<double> seconds(const std::string& target, const std::string& algorithm,
                                const KernelWork& work, const MachineSpeed& speed) const;

  // One line each, as [target, family, algorithm, c, a, b, d].
  std::vector<nlohmann::json> to_json() const;
  Status add(const nlohmann::json& line);

 private:
  using Coefficients = std::array<double, 4>;
  // By target, family and algorithm; "" for any.
  std::map<std::array<std::string, 3>, Coefficients> known_;
};

// What tells a variant's algorithm from others of its target: the numbers that it multiplies, and
// how many times for one multiplication that the function states ("float32 0.25").
std::string algorithm_of(const Variant& variant);
// The target of samples that are conversions.
inline constexpr const char* kConversions = "conversion";

}  // namespace collage
