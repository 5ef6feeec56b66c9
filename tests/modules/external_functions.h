// Functions of a library that only these tests have. Workers need them too.
#pragma once

namespace collage::testing {

/// "custom_inplace_update": adds its index to each element of a float32 tensor, in place.
void register_external_functions();

}  // namespace collage::testing
