#include "described.h"

namespace collage::tool {

namespace {

constexpr Example kExamples[] = {
    {"run", "collage run resnet50.onnx", "compile with what is measured best here, and run"},
    {"run", "collage run model.onnx --dim batch=8 --inputs image=cat.npy --save-outputs out",
     "a dynamic batch of 8, an input from a file, the outputs to a folder"},
    {"compile", "collage compile resnet50.onnx -o resnet50.collage",
     "the program as a file: run, bench, verify, explain and view take it like a model"},
    {"compile", "collage compile model.onnx -o model.collage --threads 1",
     "for a server: contexts of one thread each, any number of them at a time"},
    {"compile", "collage compile model.onnx --emit library -o libmodel.a",
     "native's kernels and weights as a C library that needs nothing of Collage"},
    {"bench", "collage bench model.onnx --compare onnxruntime,openvino --json new.json",
     "latencies beside those of other runtimes, and a report"},
    {"bench", "collage bench model.onnx --roofline --profile trace.json",
     "the time of each kernel, and a trace for Perfetto"},
    {"bench", "collage bench model.onnx --streams 2 --compare onnxruntime,openvino",
     "throughput: two inferences at a time"},
    {"bench", "collage bench model.onnx --batch 1,2,4,8 --benchmark-out batches.csv",
     "a line for each batch size"},
    {"verify", "collage verify model.onnx --layerwise",
     "compare with the reference; name the first kernel that is wrong"},
    {"partition", "collage partition model.onnx --targets onednn",
     "the partitioned module as text"},
    {"explain", "collage explain model.onnx",
     "all kernels, their runners-up, and what flags would cost"},
    {"explain", "collage explain model.onnx /layer1/Conv",
     "everything considered for that ONNX node"},
    {"explain", "collage explain model.onnx --why-not openvino /layer1/Conv",
     "why the node does not run there"},
    {"inspect", "collage inspect model.onnx --json model.json",
     "what each backend could take, and every node that one does not, with the reason"},
    {"view", "collage view model.onnx -o plan.html", "the plan as a page; open it in a browser"},
    {"view", "collage view report.json -o plan.html", "the same from a report"},
    {"diff", "collage diff old.json new.json", "status 7 where the second is slower beyond noise"},
    {"targets", "collage targets", "what this machine offers, and what is missing and why"},
    {"tune", "collage tune *.onnx --effort max", "measure ahead what these models need"},
    {"db", "collage db prune --unused 90", "forget what was not used for three months"},
    {"help", "source <(collage help --completion)", "completion in this bash"},
};

}  // namespace

std::span<const Example> examples() { return kExamples; }

bool is_visible(const CLI::App& command) { return !command.get_group().empty(); }

std::vector<const CLI::Option*> flags_of(const CLI::App& command) {
  std::vector<const CLI::Option*> flags;
  for (const CLI::Option* option : command.get_options())
    if (option->nonpositional() && !option->get_group().empty()) flags.push_back(option);
  return flags;
}

}  // namespace collage::tool
