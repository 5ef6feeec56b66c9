// Registers what every process that runs programs has: the operators, and the kernels that need no
// library.
#pragma once

namespace collage {

// Acts once; further calls do nothing.
void register_portable_kernels();

}  // namespace collage
