/* Threads that append to two zones, each append with LEYDEN_PLP or without by chance, and flush at times.
 *
 *   appends create IMAGE                makes the drive: "devices/zns" as it is
 *   appends open IMAGE THREADS          in this process, at the speed of the modelled flash
 *   appends connect ADDRESS THREADS     at a server
 *
 * Says "all is well" if every append succeeds: the drive is healthy and nearly empty.
 */
#define _POSIX_C_SOURCE 200809L

#include <leyden.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        const leyden_status status_ = (what);                                                                          \
        if (status_ != LEYDEN_OK) {                                                                                    \
            fprintf(stderr, "%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #what, leyden_status_name(status_),            \
                    leyden_last_error());                                                                              \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { APPENDS = 4000, ZONES = 2, MOST_THREADS = 16 };

static leyden_drive *drive;
static leyden_identity identity = {.size = sizeof identity};

struct worker {
    pthread_t thread;
    uint32_t random;
    uint32_t appends;
};

static uint32_t below(struct worker *it, uint32_t end)
{
    it->random = it->random * 1664525u + 1013904223u;
    return (it->random >> 16) % end;
}

static void *append(void *of)
{
    struct worker *it = of;
    unsigned char *block = calloc(1, identity.block_bytes);
    uint32_t i;
    if (block == NULL)
        exit(1);
    for (i = 0; i < it->appends; i++) {
        const uint32_t zone = below(it, ZONES), flags = below(it, 2) ? LEYDEN_PLP : 0;
        uint64_t at;
        CHECK(leyden_append(drive, zone, block, identity.block_bytes, flags, &at));
        if (below(it, 16) == 0)
            CHECK(leyden_flush(drive));
    }
    free(block);
    return NULL;
}

int main(int count, char **arguments)
{
    struct worker workers[MOST_THREADS];
    uint32_t threads, i;
    if (count == 3 && strcmp(arguments[1], "create") == 0) {
        CHECK(leyden_create(arguments[2], "devices/zns", NULL, 0));
        return 0;
    }
    if (count != 4)
        return 2;
    threads = (uint32_t)atoi(arguments[3]);
    if (threads == 0 || threads > MOST_THREADS)
        return 2;
    if (strcmp(arguments[1], "open") == 0) {
        leyden_open_options options;
        memset(&options, 0, sizeof options);
        options.size = sizeof options;
        options.speed = 1;
        CHECK(leyden_open(arguments[2], &options, NULL, &drive));
    } else {
        CHECK(leyden_connect(arguments[2], NULL, &drive));
    }
    CHECK(leyden_identify(drive, &identity));
    alarm(300); /* an append that waits for ever ends the program */
    for (i = 0; i < threads; i++) {
        workers[i].random = i * 7919u + 17u;
        workers[i].appends = APPENDS / threads;
        if (pthread_create(&workers[i].thread, NULL, append, &workers[i]) != 0)
            return 1;
    }
    for (i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    CHECK(leyden_close(drive));
    puts("all is well");
    return 0;
}
