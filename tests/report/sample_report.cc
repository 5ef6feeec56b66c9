#include "report/sample_report.h"

namespace collage::testing {

using nlohmann::json;

namespace {

json kernel(const char* name, const char* target, const std::vector<std::string>& ops, double ms) {
  json list = json::array(), nodes = json::array();
  for (const std::string& op : ops)
    list.push_back({{"op", "nn." + op}, {"index", list.size()}, {"onnx_node", op}});
  for (const json& op : list) nodes.push_back(op["index"]);
  json tensor = {{"shape", {1, 8}}, {"dtype", "float32"}, {"layout", "plain"}};
  return {{"name", name},
          {"target", target},
          {"variant", "plain"},
          {"ops", list},
          {"nodes", nodes},
          {"cost_ms", {{"median", ms}, {"p10", 0.99 * ms}, {"p90", 1.01 * ms}, {"count", 20}}},
          {"predicted_ms", ms},
          {"flops", 1000},
          {"bytes", 64},
          {"inputs", {tensor}},
          {"outputs", {tensor}},
          {"alternatives", json::array()}};
}

}  // namespace

json sample_report() {
  return {
      {"schema_version", 2},
      {"model", "tiny.onnx"},
      {"model_sha256", std::string(64, '0')},
      {"env", {{"cpu", "some"}, {"threads", 2}, {"versions", {{"onednn", "3.1"}}}}},
      {"targets", {"onednn", "native", "reference"}},
      {"predicted_ms", 3.0},
      {"correction_ms", 0.0},
      {"isolated_ms", 3.0},
      {"lower_bound_ms", 3.0},
      {"compile_s", 1.0},
      {"phases_s", json::object()},
      {"estimates", {{"measured", 0}, {"cached", 2}, {"invalid", 0}}},
      {"search",
       {{"candidates", 3},
        {"functions", 3},
        {"branches", 4},
        {"exact", true},
        {"gap", 0},
        {"covers_timed", 1}}},
      {"peak_memory", {{"planned", 128}}},
      {"kernels",
       {kernel("onednn_conv2d_relu", "onednn", {"conv2d", "relu"}, 2),
        kernel("native_softmax", "native", {"softmax"}, 1)}},
      {"conversions", json::array()},
      {"nodes", json::array()},
      {"edges", json::array()},
      {"arena", json::array()},
      {"considered", json::array()},
      {"plans", json::array()},
      {"covers", json::array()},
      {"single_backend_ms", json::object()},
      {"rejections", json::array()},
  };
}

}  // namespace collage::testing
