#include "base/printable.h"

namespace collage {

namespace {

// Bytes of the harmful UTF-8 character that `text` begins with; 0 when it begins with another.
size_t harmful(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return 2;  // further control characters
  if (byte(0) != 0xe2) return 0;
  bool turns = (byte(1) == 0x80 && (byte(2) == 0x8e || byte(2) == 0x8f)) ||
               (byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae) ||
               (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9);
  return turns ? 3 : 0;
}

}  // namespace

std::string printable(std::string_view name, size_t longest) {
  std::string text;
  for (size_t i = 0; i < name.size();) {
    size_t bytes = harmful(name.substr(i));
    text += bytes > 0 ? '?' : name[i];
    i += bytes > 0 ? bytes : 1;
  }
  if (text.size() <= longest) return text;
  size_t end = longest - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace collage
