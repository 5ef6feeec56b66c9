#include "backend/backend.h"

namespace collage {

const BackendTraits& Backend::traits() const {
  std::call_once(found_, [&] { traits_ = find_traits_(); });
  return traits_;
}

Result<ScheduleSpace> Backend::schedule_space(const Function&, const Target&,
                                              const CompileOptions&) const {
  return ScheduleSpace();
}

Result<std::unique_ptr<Kernel>> Backend::compile_conversion(const TensorType&, const Encoding& from,
                                                            const Encoding& to,
                                                            const CompileOptions&) const {
  return unsupported("{}: no conversion from {} to {}", name(), from.to_string(), to.to_string());
}

}  // namespace collage
