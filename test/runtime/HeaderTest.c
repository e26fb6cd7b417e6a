/*===- HeaderTest.c - the header is C99, and failing calls say why --------------------------===*/

#include <planrt/planrt.h>

#include <stdio.h>
#include <string.h>

int main(void) {
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
