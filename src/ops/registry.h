// Registers every operator of Collage. Call it once before any operator is looked up; further calls
// do nothing.
#pragma once

namespace collage {

void register_all_ops();

}  // namespace collage
