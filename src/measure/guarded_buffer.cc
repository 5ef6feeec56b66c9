#include "measure/guarded_buffer.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/integers.h"

namespace collage {

namespace {

constexpr size_t kAlignment = 64;
constexpr unsigned char kGuardPattern = 0xc5;

size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// What a fault report looks at: it runs in a signal handler, so nothing here allocates or locks
// there. Buffers beyond the table's size are guarded without being named.
struct Slot {
  std::atomic<uintptr_t> begin{0}, end{0}, data{0}, data_end{0};  // begin 0: free
  std::atomic<bool> read_only{false};
  char name[32] = {};
};
std::array<Slot, 512> slots;
std::mutex slots_mutex;
int report_fd = -1;
void (*before_report)() = nullptr;

size_t append(char* line, size_t at, size_t capacity, const char* text) {
  for (; *text != '\0' && at + 1 < capacity; ++text) line[at++] = *text;
  return at;
}

// Writes what is known of the address, then lets the access happen again without this handler.
void report_fault(int signal, siginfo_t* info, void*) {
  if (before_report != nullptr) before_report();
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Slot& slot : slots) {
    const uintptr_t begin = slot.begin.load(), end = slot.end.load();
    if (begin == 0 || address < begin || address >= end) continue;
    const char* what = address >= slot.data_end.load() ? "accessed memory behind "
                       : address < slot.data.load()    ? "accessed memory before "
                       : slot.read_only.load()         ? "wrote into "
                                                       : "accessed ";
    char line[128];
    size_t length = append(line, 0, sizeof line, "{\"fault\":\"");
    length = append(line, length, sizeof line, what);
    length = append(line, length, sizeof line, slot.name);
    length = append(line, length, sizeof line, "\"}\n");
    if (::write(report_fd, line, length) < 0) break;
    break;
  }
  ::signal(signal, SIG_DFL);
}

}  // namespace

Result<GuardedBuffer> GuardedBuffer::allocate(size_t bytes, Side side, const std::string& name) {
  const size_t page = page_bytes();
  if (bytes > (size_t{1} << 46)) return internal_error("{} has {} bytes", name, bytes);
  const size_t inner = round_up(std::max<size_t>(bytes, 1), page);
  GuardedBuffer buffer;
  void* memory = ::mmap(nullptr, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return error(ErrorCode::kUnavailable, "out of memory: {} bytes for {}: {}", bytes, name,
                 std::strerror(errno));
  buffer.begin_ = static_cast<char*>(memory);
  buffer.mapped_ = inner + 2 * page;
  if (::mprotect(buffer.begin_ + page, inner, PROT_READ | PROT_WRITE) != 0)
    return error(ErrorCode::kUnavailable, "out of memory: {} bytes for {}: {}", bytes, name,
                 std::strerror(errno));
  buffer.bytes_ = bytes;
  buffer.data_ = buffer.begin_ + page;
  if (side == Side::kEnd) buffer.data_ += inner - round_up(bytes, kAlignment);
  char* end = buffer.begin_ + page + inner;
  std::memset(buffer.begin_ + page, kGuardPattern,
              static_cast<size_t>(buffer.data_ - buffer.begin_) - page);
  std::memset(buffer.data_ + bytes, kGuardPattern, static_cast<size_t>(end - buffer.data_) - bytes);

  std::lock_guard lock(slots_mutex);
  for (size_t i = 0; i < slots.size(); ++i) {
    Slot& slot = slots[i];
    if (slot.begin != 0) continue;
    std::memset(slot.name, 0, sizeof slot.name);
    std::memcpy(slot.name, name.data(), std::min(name.size(), sizeof slot.name - 1));
    slot.data = reinterpret_cast<uintptr_t>(buffer.data_);
    slot.data_end = reinterpret_cast<uintptr_t>(buffer.data_ + bytes);
    slot.end = reinterpret_cast<uintptr_t>(buffer.begin_ + buffer.mapped_);
    slot.read_only = false;
    slot.begin = reinterpret_cast<uintptr_t>(buffer.begin_);
    buffer.slot_ = static_cast<int>(i);
    break;
  }
  return buffer;
}

GuardedBuffer::~GuardedBuffer() {
  if (slot_ >= 0) {
    std::lock_guard lock(slots_mutex);
    slots[static_cast<size_t>(slot_)].begin = 0;
  }
  if (begin_ != nullptr) ::munmap(begin_, mapped_);
}

void GuardedBuffer::swap(GuardedBuffer& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(mapped_, other.mapped_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(slot_, other.slot_);
}

void GuardedBuffer::fill(unsigned char byte) { std::memset(data_, byte, bytes_); }

void GuardedBuffer::make_read_only() {
  if (begin_ == nullptr) return;
  ::mprotect(begin_ + page_bytes(), mapped_ - 2 * page_bytes(), PROT_READ);
  if (slot_ >= 0) slots[static_cast<size_t>(slot_)].read_only = true;
}

Status GuardedBuffer::check() const {
  if (begin_ == nullptr) return {};
  const char* first = begin_ + page_bytes();
  const char* last = begin_ + mapped_ - page_bytes();
  auto whole = [](const char* begin, const char* end) {
    for (; begin != end; ++begin)
      if (static_cast<unsigned char>(*begin) != kGuardPattern) return false;
    return true;
  };
  const char* side = !whole(first, data_)           ? "before"
                     : !whole(data_ + bytes_, last) ? "behind"
                                                    : nullptr;
  if (side == nullptr) return {};
  const char* name = slot_ >= 0 ? slots[static_cast<size_t>(slot_)].name : "a buffer";
  return error(ErrorCode::kVerification, "wrote {} {}", side, name);
}

void report_faults_to(int fd, void (*before)()) {
  report_fd = fd;
  before_report = before;
  // A stack of its own, so that an overflow of the main thread's stack can be reported too.
  static std::array<char, 64 << 10> stack;
  stack_t own{};
  own.ss_sp = stack.data();
  own.ss_size = stack.size();
  ::sigaltstack(&own, nullptr);
  struct sigaction action {};
  action.sa_sigaction = report_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, nullptr);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace collage
