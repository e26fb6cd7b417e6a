/*===- HeaderTest.c - the header is C99, and failing calls say why --------------------------===*/

#include <planrt/planrt.h>

#include <stdio.h>
#include <string.h>

/* A number that a program was built with never changes its meaning; new ones are added here too. */
static int statusesAreStable(void) {
  static const struct {
    int value;
    planrt_status status;
    const char *name;
  } pinned[] = {{0, PLANRT_OK, "PLANRT_OK"},
                {1, PLANRT_ERR_INPUT, "PLANRT_ERR_INPUT"},
                {2, PLANRT_ERR_ARGUMENT, "PLANRT_ERR_ARGUMENT"},
                {3, PLANRT_ERR_WEIGHTS, "PLANRT_ERR_WEIGHTS"},
                {4, PLANRT_ERR_ENVIRONMENT, "PLANRT_ERR_ENVIRONMENT"},
                {5, PLANRT_ERR_MEMORY, "PLANRT_ERR_MEMORY"},
                {6, PLANRT_ERR_DEVICE, "PLANRT_ERR_DEVICE"},
                {7, PLANRT_ERR_DEVICE_LOST, "PLANRT_ERR_DEVICE_LOST"},
                {8, PLANRT_ERR_INTERNAL, "PLANRT_ERR_INTERNAL"},
                {9, PLANRT_ERR_CANCELLED, "PLANRT_ERR_CANCELLED"},
                {10, PLANRT_ERR_EXHAUSTED, "PLANRT_ERR_EXHAUSTED"}};
  int count = (int)(sizeof pinned / sizeof *pinned);
  for (int i = 0; i < count; ++i)
    if (pinned[i].value != i || (int)pinned[i].status != i ||
        strcmp(planrt_status_name((planrt_status)i), pinned[i].name) != 0)
      return 0;
  return planrt_status_name((planrt_status)count) == NULL;
}

int main(void) {
  if (!statusesAreStable())
    return 5;
  planrt_error *error = NULL;
  planrt_bundle *bundle = NULL;
  if (planrt_bundle_open("/no/such/file", &bundle, &error) != PLANRT_ERR_INPUT || bundle)
    return 1;
  if (strcmp(planrt_error_file(error), "/no/such/file") != 0 ||
      strncmp(planrt_error_message(error), "cannot open", 11) != 0)
    return 2;
  planrt_error_free(error);
  error = NULL;
  if (planrt_bundle_open(NULL, &bundle, &error) != PLANRT_ERR_ARGUMENT)
    return 3;
  printf("%s\n", planrt_error_message(error));
  planrt_error_free(error);
  planrt_bundle_free(NULL);
  planrt_error_free(NULL);
  return planrt_bundle_open("/no/such/file", &bundle, NULL) == PLANRT_ERR_INPUT ? 0 : 4;
}
