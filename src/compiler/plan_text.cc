#include "compiler/plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "artifact/saved_plan.h"
#include "ir/text_reader.h"
#include "ir/text_types.h"
#include "runtime/saved_fields.h"
#include "runtime/thread_team.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr const char* kPlaces[] = {"input", "output", "constant", "arena", "part"};

std::string place_text(const Plan& plan, size_t id) {
  const Buffer& buffer = plan.buffers[id];
  const char* const place = kPlaces[static_cast<size_t>(buffer.place)];
  switch (buffer.place) {
    case Buffer::Place::kPart:
      return fmt::format("{} of %{} at {}", place, buffer.index, buffer.offset);
    case Buffer::Place::kArena:
      return fmt::format("{} {}", place, buffer.offset);
    case Buffer::Place::kConstant:
      return fmt::format("{} {}", place, id);
    default:
      return fmt::format("{} {}", place, buffer.index);
  }
}

std::string buffers_text(const std::vector<BufferId>& buffers) {
  std::string text;
  for (const BufferId buffer : buffers)
    text += fmt::format("{}%{}", text.empty() ? "" : ", ", buffer);
  return text;
}

// Reads a text as the description of a saved plan, with what it leaves out from that of `code`.
// Whoever loads it checks it.
class PlanReader {
 public:
  PlanReader(std::string_view text, const Plan& code, json saved)
      : reader_(text), code_(code), saved_(std::move(saved)), form_(saved_) {
    for (const char* list : {"buffers", "steps", "device_arenas"}) form_[list] = json::array();
  }

  Result<json> run() {
    TRY(reader_.step());
    TRY(reader_.expect("plan"));
    TRY(reader_.expect("{"));
    while (!TRY(reader_.accept("}"))) {
      const Token first = reader_.token();
      TRY(at(first, first.kind == Token::Kind::kBinding ? read_buffer()
                    : TRY(reader_.accept("arena"))      ? read_arena()
                                                        : read_step()));
      TRY(reader_.expect(";"));
    }
    if (!reader_.is(Token::Kind::kEnd)) return reader_.expected("the end");
    return std::move(form_);
  }

 private:
  Result<std::string> passed(Token::Kind kind, const char* what) {
    if (!reader_.is(kind)) return reader_.expected(what);
    std::string text = reader_.token().text;
    TRY(reader_.step());
    return text;
  }

  Result<size_t> buffer() {  // one of the text's, maybe
    return std::strtoull(TRY(passed(Token::Kind::kBinding, "a buffer")).c_str(), nullptr, 10);
  }

  Status read_arena() {
    const int64_t bytes = TRY(parse_integer(reader_));
    if (!TRY(reader_.accept("on"))) {
      form_["arena_bytes"] = bytes;
      return {};
    }
    const std::string device = TRY(passed(Token::Kind::kString, "a device"));
    for (const DeviceArena& arena : code_.device_arenas)
      if (device_text(arena.device) == device) {
        form_["device_arenas"].push_back({{"device", to_json(arena.device)}, {"bytes", bytes}});
        return {};
      }
    return bad_model("no kernel uses memory of {}", device);
  }

  Status read_buffer() {
    if (TRY(buffer()) != form_["buffers"].size())
      return bad_model("buffers are numbered in order, from %0");
    TRY(reader_.expect(":"));
    const Type type = TRY(parse_type(reader_));
    if (!type.is_tensor()) return bad_model("a buffer is a tensor");
    json read = {{"index", 0}, {"offset", 0}, {"type", to_json(type.tensor())}};
    read["encoding"] = to_json(plain_encoding(type.tensor()));
    if (TRY(reader_.accept("as"))) {
      const std::string text = TRY(passed(Token::Kind::kString, "an encoding"));
      const auto same = std::find_if(code_.buffers.begin(), code_.buffers.end(),
                                     [&](const auto& b) { return b.encoding.to_string() == text; });
      if (same == code_.buffers.end()) return bad_model("no kernel uses the encoding {}", text);
      read["encoding"] = to_json(same->encoding);
    }
    TRY(reader_.expect("="));
    const std::string place = TRY(passed(Token::Kind::kName, "a place"));
    const auto* known = std::find(std::begin(kPlaces), std::end(kPlaces), place);
    if (known == std::end(kPlaces)) return bad_model("there is no place '{}'", place);
    read["place"] = known - std::begin(kPlaces);
    if (place == "part") {
      TRY(reader_.expect("of"));
      read["index"] = TRY(buffer());
      TRY(reader_.expect("at"));
    }
    const int64_t number = TRY(parse_integer(reader_));
    read[place == "input" || place == "output" ? "index" : "offset"] = number;
    if (place == "constant") {
      const auto of = static_cast<size_t>(number);
      if (of >= code_.buffers.size() || code_.buffers[of].place != Buffer::Place::kConstant)
        return bad_model("there is no constant {}", number);
      read["constant"] = saved_["buffers"][of]["constant"];
      read["offset"] = 0;
    }
    form_["buffers"].push_back(std::move(read));
    return {};
  }

  Status read_step() {
    const std::string name = TRY(passed(Token::Kind::kName, "a buffer or a call"));
    const auto& steps = saved_["steps"];
    const auto known = std::find_if(steps.begin(), steps.end(),
                                    [&](const json& step) { return step["name"] == name; });
    if (known == steps.end()) return bad_model("there is no kernel {}", name);
    json step = *known;
    TRY(reader_.expect("("));
    step["inputs"] = TRY(reader_.list(")", [&] { return buffer(); }));
    TRY(reader_.expect("->"));
    step["outputs"] = {TRY(buffer())};
    while (TRY(reader_.accept(","))) step["outputs"].push_back(TRY(buffer()));
    if (TRY(reader_.accept("workspace"))) step["workspace"] = TRY(parse_integer(reader_));
    form_["steps"].push_back(std::move(step));
    return {};
  }

  TextReader reader_;
  const Plan& code_;
  const json saved_;
  json form_;
};

}  // namespace

Result<std::shared_ptr<const Plan>> parse_plan(std::string_view text, const Plan& code,
                                               int threads) {
  PlanSaver saver(threads);
  TRY(saver.add(kPlanEntry, code));
  SavedPlans saved = TRY(saver.finish());
  SharedBytes& plan = saved.entries[0].content;
  const json form = TRY(PlanReader(text, code, parse_json(plan.text())).run());
  const auto written = std::make_shared<const std::string>(json_text(form));
  plan = {{written, written->data()}, written->size()};
  const auto entry = [&](const std::string& name) -> Result<SharedBytes> {
    for (const ZipEntry& one : saved.entries)
      if (one.name == name) return one.content;
    return bad_model("there is no {}", name);
  };
  const TeamScope team(threads);
  return TRY(load_plan(entry, kPlanEntry, threads)).plan;
}

std::string to_text(const Plan& plan) {
  std::string text = fmt::format("plan {{\n  arena {};\n", plan.arena_bytes);
  for (const DeviceArena& arena : plan.device_arenas)
    text += fmt::format("  arena {} on \"{}\";\n", arena.bytes, device_text(arena.device));
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    text += fmt::format("  %{}: {}", i, buffer.type.to_string());
    if (!(buffer.encoding == plain_encoding(buffer.type)))
      text += fmt::format(" as \"{}\"", buffer.encoding.to_string());
    text += fmt::format(" = {};\n", place_text(plan, i));
  }
  for (const Step& step : plan.steps) {
    text += fmt::format("  {}({}) -> {}", step.name, buffers_text(step.inputs),
                        buffers_text(step.outputs));
    if (step.kernel->workspace_bytes() > 0)
      text += fmt::format(" workspace {}", step.workspace_offset);
    text += ";\n";
  }
  return text + "}\n";
}

}  // namespace collage
