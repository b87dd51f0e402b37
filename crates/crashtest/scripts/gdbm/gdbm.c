/* GDBM under `leyden crashtest` (Debian: libgdbm-dev): a setup, a work, and a check that stays.
 *
 *     gdbm setup
 *     gdbm work STORES
 *     gdbm check                      a line on standard input for each state, a line of answer
 *
 * Each store is acknowledged when gdbm_sync has returned.
 */

#include <gdbm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static GDBM_FILE open_it(int mode) {
  char path[4096];
  snprintf(path, sizeof path, "%s/data.gdbm", getenv("LEYDEN_MOUNT"));
  return gdbm_open(path, 512, mode, 0644, NULL);
}

static datum text(char *of, int number) {
  snprintf(of, 400, "%06d", number);
  datum found = {of, 6};
  return found;
}

static datum value(char *of, int number) {
  memset(of, 'x', 300);
  snprintf(of, 400, "%06d", number);
  of[6] = 'x';
  datum found = {of, 300};
  return found;
}

static int fail(void) {
  fprintf(stderr, "gdbm: %s\n", gdbm_strerror(gdbm_errno));
  return 1;
}

static int work(int stores) {
  GDBM_FILE db = open_it(GDBM_WRITER);
  FILE *acks = fopen(getenv("LEYDEN_ACK"), "w");
  char key[400], content[400];
  if (db == NULL || acks == NULL) return fail();
  for (int number = 1; number <= stores; number++) {
    if (gdbm_store(db, text(key, number), value(content, number), GDBM_REPLACE) != 0) return fail();
    if (gdbm_sync(db) != 0) return fail();
    fprintf(acks, "ack %d\n", number);
    fflush(acks);
  }
  _exit(0); /* as a program that is killed */
}

static void check(void) {
  char line[400], key[400], content[400];
  int promised = 0;
  FILE *acks = fopen(getenv("LEYDEN_ACKS"), "r");
  while (fgets(line, sizeof line, acks) != NULL) promised++;
  fclose(acks);
  GDBM_FILE db = open_it(GDBM_READER);
  if (db == NULL) {
    printf("gdbm: %s\n", gdbm_strerror(gdbm_errno));
    return;
  }
  for (int number = 1; number <= promised; number++) {
    datum found = gdbm_fetch(db, text(key, number));
    datum want = value(content, number);
    int is_right = found.dptr != NULL && found.dsize == want.dsize && memcmp(found.dptr, want.dptr, want.dsize) == 0;
    int is_missing = found.dptr == NULL;
    free(found.dptr);
    if (is_right) continue;
    if (is_missing && gdbm_errno == GDBM_ITEM_NOT_FOUND)
      printf("lost record %d of %d\n", number, promised);
    else
      printf("record %d of %d: %s\n", number, promised, is_missing ? gdbm_strerror(gdbm_errno) : "wrong bytes");
    gdbm_close(db);
    return;
  }
  gdbm_close(db);
  printf("ok\n");
}

int main(int count, char **args) {
  const char *what = count > 1 ? args[1] : "";
  char line[400];
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (strcmp(what, "setup") == 0) {
    printf("version %s\n", gdbm_version);
    GDBM_FILE db = open_it(GDBM_NEWDB);
    if (db == NULL || gdbm_sync(db) != 0) return fail();
    gdbm_close(db);
    return 0;
  }
  if (strcmp(what, "work") == 0 && count > 2) return work(atoi(args[2]));
  if (strcmp(what, "check") == 0) {
    while (fgets(line, sizeof line, stdin) != NULL) check();
    return 0;
  }
  return 2;
}
