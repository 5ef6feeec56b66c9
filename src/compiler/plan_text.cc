#include "compiler/plan_text.h"

#include <fmt/format.h>

namespace collage {

namespace {

std::string place_text(const Buffer& buffer) {
  switch (buffer.place) {
    case Buffer::Place::kInput:
      return fmt::format("input {}", buffer.index);
    case Buffer::Place::kOutput:
      return fmt::format("output {}", buffer.index);
    case Buffer::Place::kConstant:
      return "constant";
    case Buffer::Place::kArena:
      return fmt::format("arena {}", buffer.offset);
    case Buffer::Place::kPart:
      return fmt::format("part of %{} at {}", buffer.index, buffer.offset);
  }
  return "";
}

std::string buffers_text(const std::vector<BufferId>& buffers) {
  std::string text;
  for (const BufferId buffer : buffers)
    text += fmt::format("{}%{}", text.empty() ? "" : ", ", buffer);
  return text;
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string text = fmt::format("plan {{\n  arena {};\n", plan.arena_bytes);
  for (const DeviceArena& arena : plan.device_arenas)
    text += fmt::format("  arena {} on {};\n", arena.bytes, device_text(arena.device));
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    text += fmt::format("  %{}: {}", i, buffer.type.to_string());
    if (!(buffer.encoding == plain_encoding(buffer.type)))
      text += " as " + buffer.encoding.to_string();
    text += fmt::format(" = {};\n", place_text(buffer));
  }
  for (const Step& step : plan.steps)
    text += fmt::format("  {}({}) -> {};\n", step.name, buffers_text(step.inputs),
                        buffers_text(step.outputs));
  return text + "}\n";
}

}  // namespace collage
