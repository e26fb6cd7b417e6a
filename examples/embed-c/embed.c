/*===- embed.c - a program of its own that runs a bundle --------------------------------------===*
 *
 *   cc embed.c $(pkg-config --cflags --libs planrt) -o embed
 *   ./embed model.bundle checkpoint/ 5 17 3
 *
 * Feeds the tokens and prints the eight that follow.
 *===------------------------------------------------------------------------------------------===*/
#include <planrt/planrt.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  planrt_error *error = NULL;
  planrt_bundle *bundle = NULL;
  planrt_device *device = NULL;
  planrt_weights *weights = NULL;
  planrt_session *session = NULL;
  planrt_step *step = NULL;
  uint32_t sequence = 0;
  int32_t next = 0;
  int i, code = 1;

  if (argc < 4) {
    fprintf(stderr, "usage: embed BUNDLE WEIGHTS TOKEN...\n");
    return 2;
  }
  if (planrt_bundle_open(argv[1], &bundle, &error) ||
      planrt_device_open("emulator", NULL, &device, &error) ||
      planrt_weights_open(bundle, device, argv[2], NULL, &weights, &error) ||
      planrt_session_open(weights, NULL, &session, &error) ||
      planrt_sequence_create(session, &sequence, &error) ||
      planrt_step_open(session, NULL, NULL, &step, &error))
    goto done;
  for (i = 3; i < argc; ++i) {
    int32_t token = atoi(argv[i]);
    if (planrt_step_run(step, 1, &sequence, &token, &next, &error))
      goto done;
  }
  for (i = 0; i < 8; ++i) {
    int32_t token = next;
    printf("%d\n", (int)token);
    if (planrt_step_run(step, 1, &sequence, &token, &next, &error))
      goto done;
  }
  code = 0;

done:
  if (code)
    fprintf(stderr, "%s: %s\n", planrt_error_file(error), planrt_error_message(error));
  planrt_error_free(error);
  planrt_step_free(step);
  planrt_session_free(session);
  planrt_weights_free(weights);
  planrt_device_free(device);
  planrt_bundle_free(bundle);
  return code;
}
