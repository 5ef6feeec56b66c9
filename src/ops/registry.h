// Every operator of Collage. Call once before anything that looks an operator up; further calls do
// nothing.
#pragma once

namespace collage {

void register_all_ops();

}  // namespace collage
