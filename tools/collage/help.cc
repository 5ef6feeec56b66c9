#include "help.h"

#include <fmt/format.h>

namespace collage::tool {

namespace {

struct Example {
  const char *verb, *line, *meaning;
};

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
    {"bench", "collage bench model.onnx --layers",
     "the time of each kernel against the machine's measured peaks"},
    {"bench", "collage bench model.onnx --streams 2 --compare onnxruntime,openvino",
     "throughput: two inferences at a time"},
    {"verify", "collage verify model.onnx --layerwise",
     "compare with the reference; name the first kernel that is wrong"},
    {"verify", "collage verify model.onnx --compare onnxruntime",
     "compare with what ONNX Runtime makes of the same file"},
    {"partition", "collage partition model.onnx --targets onednn",
     "the partitioned module as text"},
    {"explain", "collage explain model.onnx",
     "all kernels, their runners-up, and what flags would cost"},
    {"explain", "collage explain model.onnx /layer1/Conv",
     "everything considered for that ONNX node"},
    {"explain", "collage explain model.onnx /layer1/Conv openvino",
     "why the node does not run there"},
    {"inspect", "collage inspect model.onnx --json model.json",
     "what each backend could take, and every node that one does not, with the reason"},
    {"view", "collage view model.onnx -o plan.html", "the plan as a page; open it in a browser"},
    {"view", "collage view report.json -o plan.html", "the same from a report"},
    {"diff", "collage diff old.json new.json", "status 7 where the second is slower beyond noise"},
    {"targets", "collage targets", "what this machine offers, and what is missing and why"},
    {"targets", "collage targets kernels",
     "the kinds of kernels that each backend has: what they multiply and round"},
    {"tune", "collage tune *.onnx --effort max", "measure ahead what these models need"},
    {"fleet", "collage fleet *.onnx --db postgresql://ann@costs/costs",
     "measure them on all machines whose workers share that database"},
    {"worker", "collage worker --db postgresql://ann@costs/costs",
     "measure what `collage fleet` asks for, on this machine, until it is told to end"},
    {"db", "collage db prune stale", "forget rows of other versions of the backends"},
    {"help", "collage help bench", "flags and examples of a sub-command"},
};

std::string examples_of(const std::string& verb) {
  std::string text;
  for (const Example& example : kExamples)
    if (verb == example.verb)
      text += fmt::format("  {}\n      {}\n", example.line, example.meaning);
  return text.empty() ? text : "Examples:\n" + text;
}

bool is_visible(const CLI::App& command) { return !command.get_group().empty(); }

}  // namespace

Command add_help(CLI::App& app, const std::vector<Command>& commands) {
  auto verb = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("help", "flags and examples of a sub-command");
  command->add_option("VERB", *verb, "a sub-command");
  return {command, [verb, &app, &commands]() -> Status {
            if (verb->empty()) {
              fmt::print("{}\n\nSubcommands:\n", app.get_description());
              for (const Command& other : commands)
                if (is_visible(*other.app))
                  fmt::print("  {:<10} {}\n", other.app->get_name(), other.app->get_description());
              fmt::print("\ncollage help VERB: its flags, with examples\n");
              return {};
            }
            for (const Command& other : commands)
              if (is_visible(*other.app) && other.app->get_name() == *verb) {
                fmt::print("{}\n{}", other.app->help(), examples_of(*verb));
                return {};
              }
            return usage_error("help: there is no sub-command '{}'", *verb);
          }};
}

}  // namespace collage::tool
