// Ctrl-C as a request: long work looks at `interrupted` between two pieces, keeps what it has and
// goes on with the best so far. A second Ctrl-C ends the process at once.
#pragma once

namespace collage {

// From now on the first SIGINT or SIGTERM only sets the flag.
void catch_interrupts();
bool interrupted();

}  // namespace collage
