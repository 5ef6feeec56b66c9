// COLLAGE_CHECK(condition, format, …): for our own bugs only. Prints place and message, then
// aborts. Failures that input, a backend or the hardware can cause are Statuses instead.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#define COLLAGE_CHECK(condition, ...)                                                    \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      ::fmt::print(stderr, "{}:{}: internal check failed: {}: {}\n", __FILE__, __LINE__, \
                   #condition, ::fmt::format(__VA_ARGS__));                              \
      ::std::abort();                                                                    \
    }                                                                                    \
  } while (false)
