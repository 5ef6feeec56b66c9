// The descriptors through which a worker talks with its parent (task.h says what).
#pragma once

namespace collage {

// In the worker; the last is the memory that they share.
inline constexpr int kTasksFd = 3, kEventsFd = 4, kSharedFd = 5;

}  // namespace collage
