#include "ops/families.h"
namespace collage {
void register_attention_ops() {}
}  // namespace collage
