// Names of loaders begin with that of a namespace: tests compile the kernels a second time under
// other names (cmake/tests.cmake), by macros, and each set has loaders of its own.
#pragma once

#define COLLAGE_TEXT_OF(token) #token
/// The namespace as text, macros replaced.
#define COLLAGE_NAME_OF(space) COLLAGE_TEXT_OF(space)
