#include "ops/families.h"
namespace collage {
void register_scatter_ops() {}
}  // namespace collage
