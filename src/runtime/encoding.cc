#include "runtime/encoding.h"

namespace collage {

std::string Encoding::to_string() const {
  std::string text(dtype_name(dtype));
  if (!layout.is_plain()) text += ":" + layout.to_string();
  if (!is_host_memory(device)) text += "@" + device_text(device);
  return text;
}

std::string device_text(const VirtualDevice& device) {
  std::string text = device.device + ":" + std::to_string(device.id);
  if (!device.memory_scope.empty()) text += "/" + device.memory_scope;
  return text;
}

}  // namespace collage
