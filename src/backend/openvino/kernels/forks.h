// OpenVINO's kernels in child processes. TBB's workers hold its locks for a moment after a run has
// ended, when they look for work and fall asleep; a child that is forked then has the locks held by
// threads that it does not have, and its first run waits for ever.
#pragma once

namespace collage::openvino {

// From now on, a fork waits until no other thread of the process is running, for at most a fifth
// of a second: threads that compute on would keep it for ever.
void let_workers_sleep_before_forks();

}  // namespace collage::openvino
