#include "runtime/run_number.h"

#include <utility>

namespace collage {

namespace {

thread_local RunNumber::State state_of_thread;

// Spreads the bits of a number over all of it.
uint64_t spread(uint64_t number) {
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
  number = (number ^ number >> 27) * 0x94d049bb133111eb;
  return number ^ number >> 31;
}

}  // namespace

RunNumber::RunNumber(State state) : before_(std::exchange(state_of_thread, state)) {}
RunNumber::RunNumber(std::optional<uint64_t> number)
    : RunNumber(State{number, state_of_thread.iteration}) {}
RunNumber::~RunNumber() { state_of_thread = before_; }
RunNumber::State RunNumber::state() { return state_of_thread; }
std::optional<uint64_t> RunNumber::of_user() { return state_of_thread.of_user; }
uint64_t RunNumber::current() {
  return state_of_thread.of_user.value_or(0) + state_of_thread.iteration;
}

LoopIteration::LoopIteration() : around_(state_of_thread.iteration) {}
LoopIteration::~LoopIteration() { state_of_thread.iteration = around_; }
void LoopIteration::begin(uint64_t index) {
  state_of_thread.iteration = spread(spread(around_ + 1) + index);
}

}  // namespace collage
