/* Loads an artifact of a model with one input (1, 3, 12, 12) and one output, runs it on inputs of
 * several forms, and prints the output's first value. Exits with 1, saying why, where anything is
 * wrong. */
#define _DEFAULT_SOURCE
#include <sys/wait.h>
#include <unistd.h>

#include "runtime_checks.h"

enum { kChannels = 3, kSide = 12, kElements = kChannels * kSide * kSide };

int main(int argc, char** argv) {
  require(argc == 2, "usage: runtime_test F.collage");
  require(collage_runtime_abi() == COLLAGE_RUNTIME_ABI, "abi");
  collage_program* program = NULL;
  require(collage_program_load("absent.collage", &program) == 2 && program == NULL &&
              strlen(collage_last_error()) > 0,
          "a file that is not there");
  require(collage_program_load(argv[1], &program) == 0, "load");
  require(collage_program_num_inputs(program) == 1 && collage_program_num_outputs(program) == 1,
          "inputs and outputs");
  collage_tensor_info info;
  require(collage_program_output(program, 0, &info) == 0 && strcmp(info.name, "scores") == 0,
          "the output's name");
  require(info.ndim == 2 && info.shape[1] == 10 && info.code == kDLFloat && info.bits == 32,
          "the output's type");
  require(collage_program_input(program, 1, &info) == 2, "an input that there is not");
  collage_context* context = NULL;
  require(collage_context_create(program, &context) == 0, "context");
  collage_program_free(program);

  static float dense[kElements + 1], turned[kElements];
  for (int c = 0; c < kChannels; ++c)
    for (int i = 0; i < kSide * kSide; ++i) {
      float value = (float)((c * 31 + i * 7) % 17) / 17;
      dense[1 + c * kSide * kSide + i] = value; /* not aligned */
      turned[i * kChannels + c] = value;        /* channels last */
    }
  int64_t shape[] = {1, kChannels, kSide, kSide};
  int64_t strides[] = {kElements, 1, kSide * kChannels, kChannels};
  DLManagedTensor plain = tensor(dense + 1, 4, shape, NULL),
                  last = tensor(turned, 4, shape, strides);
  DLManagedTensor *input = &plain, *first = NULL, *second = NULL;
  require(collage_context_run(context, &input, 1, &first, 1) == 0, "run");
  input = &last;
  require(collage_context_run(context, &input, 1, &second, 1) == 0, "run with strides");
  require(memcmp(first->dl_tensor.data, second->dl_tensor.data, 10 * sizeof(float)) == 0,
          "strides change the result");

  /* Into every second element of the caller's. */
  float spread[20] = {0};
  int64_t out_shape[] = {1, 10}, out_strides[] = {20, 2};
  DLManagedTensor given = tensor(spread, 2, out_shape, out_strides), *output = &given;
  require(collage_context_run(context, &input, 1, &output, 1) == 0, "run into strides");
  for (int i = 0; i < 10; ++i)
    require(spread[2 * i] == ((float*)first->dl_tensor.data)[i] && spread[2 * i + 1] == 0,
            "an output with strides");

  /* Outputs in the memory of an input. */
  out_strides[1] = 1;
  given = tensor(turned + 7, 2, out_shape, out_strides);
  require(collage_context_run(context, &input, 1, &output, 1) == 3 &&
              strstr(collage_last_error(), "overlaps that of input 'image'") != NULL,
          "an output in an input");
  out_strides[1] = 0;
  given = tensor(spread, 2, out_shape, out_strides);
  require(collage_context_run(context, &input, 1, &output, 1) == 3 &&
              strstr(collage_last_error(), "its elements overlap one another") != NULL,
          "an output whose elements are one");

  /* The context's threads are the parent's. */
  int status = 1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    for (int run = 0; run < 20; ++run) {
      DLManagedTensor* third = NULL;
      require(collage_context_run(context, &input, 1, &third, 1) == 0, "run in a child process");
      require(memcmp(first->dl_tensor.data, third->dl_tensor.data, 10 * sizeof(float)) == 0,
              "a child process changes the result");
      third->deleter(third);
    }
    _exit(0);
  }
  require(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child process");

  shape[1] = 4;
  require(collage_context_run(context, &input, 1, &output, 1) == 3, "an input of another shape");
  require(collage_context_run(context, &input, 0, &output, 1) == 3, "no inputs");
  require(collage_context_run(NULL, &input, 1, &output, 1) == 2, "no context");
  printf("%.9g\n", ((float*)first->dl_tensor.data)[0]);
  first->deleter(first);
  second->deleter(second);
  collage_context_free(context);
  return 0;
}
