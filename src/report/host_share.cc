#include "report/host_share.h"

#include <fmt/format.h>

#include "backend/backend.h"

namespace collage {

HostShare host_share(const CompileReport& report) {
  HostShare result;
  double all = 0, on_host = 0;
  for (const ReportedKernel& kernel : report.kernels) {
    all += kernel.flops;
    const Backend* backend = find_backend(kernel.target.substr(0, kernel.target.find(' ')));
    if (backend == nullptr || !backend->is_host()) continue;
    result.host = kernel.target;
    on_host += kernel.flops;
    for (const ReportedKernel::OpRef& op : kernel.ops) ++result.operators[op.op];
  }
  if (all > 0) result.share = on_host / all;
  result.alone = report.targets.size() == 1;
  return result;
}

std::string HostShare::operators_text() const {
  std::string text;
  for (const auto& [op, count] : operators)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", op,
                        count > 1 ? fmt::format(" ({})", count) : "");
  return text;
}

}  // namespace collage
