/*===- decode.c - a greedy decoder in C -------------------------------------------------------===*
 *
 *   decode BUNDLE WEIGHTS TOKEN,TOKEN,... COUNT [DEVICE]
 *
 * Feeds the tokens one by one, then prints the COUNT that follow, each the one of the highest logit.
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
  int32_t token = 0, next = 0;
  char *text = argc > 3 ? argv[3] : NULL, *end = NULL;
  long count = argc == 5 || argc == 6 ? strtol(argv[4], &end, 10) : 0;
  int code = 2; /* as long as only the command line can be wrong */
  if (count < 1 || *end)
    goto done;
  if (planrt_bundle_open(argv[1], &bundle, &error) ||
      planrt_device_open(argc == 6 ? argv[5] : "emulator", NULL, &device, &error) ||
      planrt_weights_open(bundle, device, argv[2], NULL, &weights, &error) ||
      planrt_session_open(weights, NULL, &session, &error) ||
      planrt_sequence_create(session, &sequence, &error) ||
      planrt_step_open(session, NULL, NULL, &step, &error))
    goto done;
  do { /* the prompt */
    long value = strtol(text, &end, 10);
    token = (int32_t)value;
    if (end == text || (*end && *end != ',') || value != token)
      goto done;
    if (planrt_step_run(step, 1, &sequence, &token, &next, &error))
      goto done;
    text = end + 1;
  } while (*end);
  for (; count > 0; --count) {
    printf(count > 1 ? "%d," : "%d\n", (int)next);
    /* No token: the sequence goes on with the one it has chosen. The last is not fed back. */
    if (count > 1 && planrt_step_run(step, 1, &sequence, NULL, &next, &error))
      goto done;
  }
  code = 0;
done:
  if (error)
    fprintf(stderr, "%s%s%s\n", planrt_error_file(error), *planrt_error_file(error) ? ": " : "",
            planrt_error_message(error));
  else if (code)
    fprintf(stderr, "usage: decode BUNDLE WEIGHTS TOKEN,TOKEN,... COUNT [DEVICE]\n");
  code = error ? 1 : code;
  planrt_error_free(error);
  planrt_step_free(step), planrt_session_free(session), planrt_weights_free(weights);
  planrt_device_free(device), planrt_bundle_free(bundle);
  return code;
}
