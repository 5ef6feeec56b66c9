#include "fuzz/mutate_json.h"

#include <vector>

#include "fuzz/mutate_text.h"

namespace collage::fuzz {

using nlohmann::json;

namespace {

void collect(json& value, std::vector<json*>& found) {
  found.push_back(&value);
  if (value.is_structured())
    for (json& inner : value) collect(inner, found);
}

json any_value(Random& random) {
  switch (random.below(10)) {
    case 0:
      return nullptr;
    case 1:
      return random.one_in(2);
    case 2:
      return json::array();
    case 3:
      return json::object();
    case 4:
      return std::string(random.one_in(8) ? 5000 : random.below(4), 'a');
    case 5:
      return "\x1b[31m</script>\xe2\x80\xae";
    default:
      return json::parse(unusual_number(random), nullptr, false);
  }
}

void change(json& root, Random& random) {
  std::vector<json*> all;
  collect(root, all);
  json& value = *all[random.below(all.size())];
  const json other = *all[random.below(all.size())];
  switch (random.below(12)) {
    case 0:
      value = any_value(random);
      return;
    case 1:
      value = other;
      return;
    case 2:
      if (value.is_object() && !value.empty()) {
        auto item =
            std::next(value.begin(), static_cast<std::ptrdiff_t>(random.below(value.size())));
        value.erase(item);
      } else if (value.is_array() && !value.empty()) {
        value.erase(random.below(value.size()));
      }
      return;
    case 3:
      if (value.is_object() && !value.empty()) {
        auto item =
            std::next(value.begin(), static_cast<std::ptrdiff_t>(random.below(value.size())));
        const json moved = item.value();
        const std::string key = item.key();
        value.erase(key);
        value[key + "x"] = moved;
      } else if (value.is_array() && !value.empty()) {
        const json again = value[random.below(value.size())];
        for (size_t times = random.one_in(16) ? 300 : 1 + random.below(3); times > 0; --times)
          value.push_back(again);
      }
      return;
    default:
      break;
  }
  // A value of the same type.
  if (value.is_number()) {
    value = json::parse(unusual_number(random), nullptr, false);
  } else if (value.is_string()) {
    for (size_t tries = 0; tries < 20; ++tries)
      if (const json& similar = *all[random.below(all.size())];
          similar.is_string() && !random.one_in(3)) {
        const std::string taken = similar.get<std::string>();
        value = taken;
        return;
      }
    const TextMutator words({value.get<std::string>() + " "});
    value = words.changed(value.get<std::string>(), random);
  } else if (value.is_boolean()) {
    value = !value.get<bool>();
  } else if (!random.one_in(3)) {
    change(root, random);  // of an object or a list, rather something inside
  }
}

}  // namespace

json with_other_values(json value, Random& random) {
  for (size_t n = 1 + random.below(3); n > 0; --n) change(value, random);
  return value;
}

std::string changed_json(const json& value, Random& random) {
  const std::string text =
      with_other_values(value, random).dump(-1, ' ', false, json::error_handler_t::replace);
  return random.one_in(16) ? with_other_bytes(text, random) : text;
}

}  // namespace collage::fuzz
