// What `fleet`, which files tasks, and `worker`, which takes them, agree on.
#pragma once

#include <string_view>

#include "cost/task_queue.h"

namespace collage::tool {

// Whether a task may carry this flag of `tune`. None that names a file does: workers have other
// files, and load no code that others name.
bool may_be_sent(std::string_view flag);

// $COLLAGE_MEASURE_TIMEOUT seconds, if that is less than a minute: tests do not wait for it.
Result<std::unique_ptr<TaskQueue>> open_queue(const std::string& address);

}  // namespace collage::tool
