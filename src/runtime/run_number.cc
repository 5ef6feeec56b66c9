#include "runtime/run_number.h"

#include <utility>

namespace collage {

namespace {

thread_local std::optional<uint64_t> number_of_run;
thread_local uint64_t number_of_iteration = 0;  // outside of loops

// Spreads the bits of a number over all of it.
uint64_t spread(uint64_t number) {
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
  number = (number ^ number >> 27) * 0x94d049bb133111eb;
  return number ^ number >> 31;
}

}  // namespace

RunNumber::RunNumber(std::optional<uint64_t> number)
    : before_(std::exchange(number_of_run, number)) {}
RunNumber::~RunNumber() { number_of_run = before_; }
std::optional<uint64_t> RunNumber::of_user() { return number_of_run; }
uint64_t RunNumber::current() { return number_of_run.value_or(0) + number_of_iteration; }

LoopIteration::LoopIteration() : around_(number_of_iteration) {}
LoopIteration::~LoopIteration() { number_of_iteration = around_; }
void LoopIteration::begin(uint64_t index) {
  number_of_iteration = spread(spread(around_ + 1) + index);
}

}  // namespace collage
