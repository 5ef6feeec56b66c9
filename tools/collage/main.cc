// The command `collage`.

#include <cstdio>

#include "collage/version.h"

int main() {
  std::printf("collage %s\n", COLLAGE_VERSION);
  return 0;
}
