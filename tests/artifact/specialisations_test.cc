// Files of dynamic programs whose table of specialisations holds something else than it was written
// with: an error, or a program that runs; never a crash.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "artifact/manifest.h"
#include "artifact/tiny_plan.h"
#include "artifact/write_artifact.h"
#include "base/json_fields.h"

namespace collage {
namespace {

using nlohmann::json;

// tiny_plan() for one size of "sides", whose first result is also what a run adds to a state.
json table() {
  const json image = {{"name", "x"},
                      {"dims", {"1", "20", "sides", "3"}},
                      {"dtype", "float32"},
                      {"has_shape", true}};
  json kept = image, added = image;
  kept["name"] = "past";
  kept["dims"][2] = "past";
  added["dims"][2] = "sides";
  const json type = {{"dtype", "float32"}, {"shape", {1, 20, 3, 3}}};
  json past = type;
  past["shape"][2] = 8;
  return {{"interface",
           {{"inputs", {image}},
            {"outputs", {image, image}},
            {"states", {{{"input", kept}, {"added", added}, {"axis", 2}, {"dim", "past"}}}},
            {"buckets", {{"past", {8, 16}}}},
            {"padding", {{"x", 1.5}}}}},
          {"results", {"y", "z", "y"}},
          {"specialisations",
           {{{"part", ""},
             {"conditions", {{"x", {{"type", type}}}, {"past", {{"type", past}}}}},
             {"inputs", {"x"}},
             {"outputs", {"y", "copy"}},
             {"aliases", {{"z", "x"}}},
             {"constants", json::object()},
             {"plan", "plan.json"}}}}};
}

class Specialisations : public ::testing::Test {
 protected:
  ~Specialisations() override { std::filesystem::remove(path_); }

  // What two runs of the file say.
  Status run(const std::string& text) {
    PlanSaver saver(1);
    if (Status status = saver.add(kPlanEntry, *testing::tiny_plan()); !status.ok()) return status;
    saver.add_text(kSpecialisationsEntry, text);
    Result<SavedPlans> saved = saver.finish();
    if (!saved) return saved.status();
    const Status written = write_artifact(path_, std::move(saved).value(), {1, "m"}, {});
    if (!written.ok()) return written;
    Result<Program> artifact = Program::load(path_);
    if (!artifact) return artifact.status();
    Result<Context> context = artifact->make_context();
    if (!context) return context.status();
    std::vector<Tensor> inputs(artifact->inputs().size(), testing::tiny_input(1));
    Status status;
    for (int i = 0; i < 2 && status.ok(); ++i) {
      Result<std::vector<Tensor>> outputs = context->run(inputs);
      status = outputs.ok() ? Status() : outputs.status();
    }
    return status;
  }

  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() /
      ("collage_specialisations_" + std::to_string(::getpid()) + ".collage");
};

TEST_F(Specialisations, RunAsTheyAreWritten) {
  const Status status = run(json_text(table()));
  EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST_F(Specialisations, MistakesAreNamed) {
  const auto message = [&](const char* pointer, const json& value) {
    json changed = table();
    changed[json::json_pointer(pointer)] = value;
    return run(json_text(changed)).message();
  };
  EXPECT_EQ(message("/interface/states/0/axis", 1), "state 'past' has no dimension that grows");
  EXPECT_EQ(message("/interface/states/0/added/dims/1", "21"), "");
  EXPECT_EQ(message("/results/0", "nobody"), "there is no tensor 'nobody'");
  EXPECT_EQ(message("/results", {"y"}), "there are 1 results of 2 outputs and 1 states");
  EXPECT_EQ(message("/specialisations/0/outputs", {"y"}),
            "plan.json: its plan has other inputs and outputs");
  EXPECT_EQ(message("/specialisations/0/conditions/x/type/shape/1", 21),
            "it was not compiled for past (1, 20, 8, 3), x (1, 20, 3, 3)");
}

TEST_F(Specialisations, SurviveAnyText) {
  const std::string text = json_text(table());
  std::mt19937 random(5);
  int failures = 0;
  for (int i = 0; i < 400; ++i) {
    std::string changed = text;
    for (int k = 0; k < 1 + i % 3; ++k) {
      const std::string other = "0123456789-,:[]{}\"xpa";
      changed[random() % changed.size()] = other[random() % other.size()];
    }
    failures += run(changed).ok() ? 0 : 1;
  }
  EXPECT_GT(failures, 200);
}

}  // namespace
}  // namespace collage
