#include "ops/families.h"
namespace collage {
void register_scan_ops() {}
}  // namespace collage
