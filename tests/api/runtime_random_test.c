/* Loads an artifact that draws four random numbers for its input's four: every run of a context
 * draws others, and two contexts the same sequence. Exits with 1, saying why, where it is wrong. */
#include "runtime_checks.h"

enum { kNumbers = 4, kContexts = 2, kRuns = 3 };

int main(int argc, char** argv) {
  require(argc == 2, "usage: runtime_random_test F.collage");
  collage_program* program = NULL;
  require(collage_program_load(argv[1], &program) == 0, "load");
  float zeros[kNumbers] = {0}, drawn[kContexts][kRuns][kNumbers];
  int64_t shape[] = {kNumbers};
  for (int c = 0; c < kContexts; ++c) {
    collage_context* context = NULL;
    require(collage_context_create(program, &context) == 0, "context");
    for (int run = 0; run < kRuns; ++run) {
      DLManagedTensor x = tensor(zeros, 1, shape, NULL), y = tensor(drawn[c][run], 1, shape, NULL);
      DLManagedTensor *input = &x, *output = &y;
      require(collage_context_run(context, &input, 1, &output, 1) == 0, "run");
    }
    collage_context_free(context);
  }
  collage_program_free(program);
  for (int run = 1; run < kRuns; ++run)
    require(memcmp(drawn[0][0], drawn[0][run], sizeof drawn[0][0]) != 0, "runs draw the same");
  require(memcmp(drawn[0][1], drawn[0][2], sizeof drawn[0][0]) != 0, "runs draw the same");
  require(memcmp(drawn[0], drawn[1], sizeof drawn[0]) == 0, "contexts draw other sequences");
  return 0;
}
