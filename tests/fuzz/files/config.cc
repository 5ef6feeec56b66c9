// What users configure: the partition configuration (JSON, with patterns inside).
#include "partition/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "backend/targets/backends.h"
#include "backend/targets/targets.h"
#include "case_file.h"
#include "fuzz/fuzz.h"
#include "fuzz/mutate_json.h"
#include "fuzz/mutate_text.h"
#include "measure/task.h"
#include "test_paths.h"

namespace collage::fuzz {
namespace {

using nlohmann::json;

std::vector<std::string> config_seeds() {
  std::vector<std::string> texts;
  for (const auto& file : std::filesystem::directory_iterator(std::string(COLLAGE_TESTS_DIR) +
                                                              "/compiler/partition_cases")) {
    std::istringstream lines(read_cases(file.path()).head);
    for (std::string line; std::getline(lines, line);)
      if (const size_t at = line.find('{'); at != std::string::npos)
        if (parse_config(line.substr(at), "config.json").ok()) texts.push_back(line.substr(at));
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

Outcome run_config(const std::string& input) {
  const Result<PartitionConfig> config = parse_config(input, "config.json");
  if (config.ok()) {
    const auto targets = configured_targets(*config, {});
    if (!targets.ok()) {
      EXPECT_FALSE(targets.status().message().empty());
    }
    return Outcome::kAccepted;
  }
  EXPECT_EQ(config.status().code(), ErrorCode::kUsage) << config.status().to_string();
  return parse_json(input).is_null() ? Outcome::kNoSyntax : Outcome::kRefused;
}

}  // namespace

FuzzTarget partition_config() {
  register_all();
  const std::vector<std::string> texts = config_seeds();
  std::vector<json> values;
  for (const std::string& text : texts) values.push_back(json::parse(text));
  return {"partition_config", texts,
          [values, mutator = TextMutator(texts)](Random& random) {
            // Patterns are a language of their own.
            if (random.one_in(3)) return mutator.make(random);
            return changed_json(random.pick(values), random);
          },
          run_config};
}

}  // namespace collage::fuzz
