/* A served drive from C: every thread with one handle, power cuts by another one, and a server that goes.
 *
 *   served ADDRESS         does its work, and says "all is well"
 *   served ADDRESS wait    says "ready", and waits with calls until the server is gone
 */
#include <leyden.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #what, leyden_last_error());                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { THREADS = 4, ROUNDS = 12 };

static leyden_identity identity;

static leyden_drive *connected(const char *address, uint32_t flags)
{
    leyden_connect_options options = {.size = sizeof options, .flags = flags};
    leyden_drive *drive = NULL;
    CHECK(leyden_connect(address, &options, &drive) == LEYDEN_OK && drive != NULL);
    return drive;
}

static void wrong_calls(const char *address)
{
    leyden_connect_options unset = {0}, unknown = {.size = sizeof unknown, .flags = 64};
    leyden_drive *drive = (leyden_drive *)&unset;
    CHECK(leyden_connect(address, NULL, NULL) == LEYDEN_E_ARGUMENT);
    CHECK(leyden_connect(NULL, NULL, &drive) == LEYDEN_E_ARGUMENT && drive == NULL);
    CHECK(leyden_connect(address, &unset, &drive) == LEYDEN_E_ARGUMENT);
    CHECK(leyden_connect(address, &unknown, &drive) == LEYDEN_E_ARGUMENT);
    CHECK(leyden_connect("tcp:1", NULL, &drive) == LEYDEN_E_ARGUMENT);
    CHECK(leyden_connect("unix:", NULL, &drive) == LEYDEN_E_ARGUMENT);
    CHECK(leyden_connect("unix:/nowhere/at/all", NULL, &drive) == LEYDEN_E_NOT_FOUND && drive == NULL);
    CHECK(strstr(leyden_last_error(), "--programs") != NULL);
    CHECK(strcmp(leyden_status_name(LEYDEN_E_GONE), "Server Gone") == 0);
}

struct worker {
    pthread_t thread;
    leyden_drive *drive;
    uint32_t zone;
    uint32_t acknowledged;
};

/* Appends blocks of a number each, until it has enough or the power fails. */
static void *append(void *of)
{
    struct worker *it = of;
    const size_t bytes = identity.block_bytes;
    unsigned char *block = malloc(bytes);
    CHECK(block != NULL);
    for (; it->acknowledged < ROUNDS; it->acknowledged++) {
        uint64_t at = 0;
        memset(block, (int)(it->zone * ROUNDS + it->acknowledged + 1), bytes);
        const leyden_status status = leyden_append(it->drive, it->zone, block, bytes, LEYDEN_PLP, &at);
        if (status == LEYDEN_E_POWER_LOST || status == LEYDEN_NVME_NOT_READY) break;
        CHECK(status == LEYDEN_OK);
        CHECK(at == it->zone * identity.zone_size_bytes + it->acknowledged * bytes);
    }
    free(block);
    return NULL;
}

static void check(const struct worker *it)
{
    const size_t bytes = identity.block_bytes;
    unsigned char *block = malloc(bytes);
    leyden_zone zone;
    uint32_t described = 0;
    CHECK(block != NULL);
    CHECK(leyden_zone_report(it->drive, it->zone, 1, &zone, sizeof zone, &described) == LEYDEN_OK && described == 1);
    CHECK(zone.zone == it->zone && zone.held_bytes >= it->acknowledged * bytes);
    for (uint32_t number = 0; number < it->acknowledged; number++) {
        CHECK(leyden_read(it->drive, zone.start_bytes + number * bytes, block, bytes) == LEYDEN_OK);
        for (size_t at = 0; at < bytes; at++) CHECK(block[at] == (unsigned char)(it->zone * ROUNDS + number + 1));
    }
    free(block);
}

static void work(const char *address)
{
    leyden_drive *drive = connected(address, LEYDEN_CONNECT_CLAIM), *other = NULL;
    leyden_connect_options claim = {.size = sizeof claim, .flags = LEYDEN_CONNECT_CLAIM};
    leyden_cut_report cut = {.size = sizeof cut};
    leyden_restore_report restored = {.size = sizeof restored};
    leyden_stats stats = {.size = sizeof stats};
    struct worker workers[THREADS];
    size_t needed = 0;

    identity.size = sizeof identity;
    CHECK(leyden_identify(drive, &identity) == LEYDEN_OK && identity.is_zoned == 1);
    CHECK(leyden_connect(address, &claim, &other) == LEYDEN_E_IN_USE && other == NULL);
    other = connected(address, 0);
    CHECK(leyden_last_cut(drive, &cut) == LEYDEN_E_NOT_FOUND);
    for (int round = 0; round < 6; round++) {
        CHECK(leyden_zone_reset_all(drive) == LEYDEN_OK);
        for (uint32_t number = 0; number < THREADS; number++) {
            struct worker it = {.drive = drive, .zone = number};
            workers[number] = it;
            CHECK(pthread_create(&workers[number].thread, NULL, append, &workers[number]) == 0);
        }
        if (round % 2 == 1) CHECK(leyden_cut(other, &cut) == LEYDEN_OK);
        for (int number = 0; number < THREADS; number++) CHECK(pthread_join(workers[number].thread, NULL) == 0);
        if (round % 2 == 1) CHECK(leyden_restore(other, 0, &restored) == LEYDEN_OK);
        for (int number = 0; number < THREADS; number++) check(&workers[number]);
    }
    CHECK(leyden_restore(other, 0, NULL) == LEYDEN_E_SWITCH);
    CHECK(leyden_last_cut(drive, &cut) == LEYDEN_OK && cut.lost_bytes == 0);
    CHECK(leyden_zone_open(drive, 5, LEYDEN_ZONE_ZRWA) == LEYDEN_OK);
    CHECK(leyden_zone_close(drive, 99999) == LEYDEN_E_NOT_FOUND);
    CHECK(leyden_flush(drive) == LEYDEN_OK);
    CHECK(leyden_mark(drive, "here", 4) == LEYDEN_OK);
    CHECK(leyden_read(drive, 1, &stats, 1) == LEYDEN_NVME_INVALID_FIELD);
    CHECK(leyden_get_stats(drive, &stats) == LEYDEN_OK && stats.writes > 0 && stats.is_on == 1);
    CHECK(leyden_get_stats_json(drive, NULL, 0, &needed) == LEYDEN_OK && needed > 100);
    CHECK(leyden_close(other) == LEYDEN_OK);
    leyden_abandon(drive);
    CHECK(leyden_close(connected(address, LEYDEN_CONNECT_CLAIM)) == LEYDEN_OK);
}

static void wait_until_gone(const char *address)
{
    leyden_drive *drive = connected(address, 0);
    leyden_status status = LEYDEN_OK;
    puts("ready");
    fflush(stdout);
    while (status == LEYDEN_OK) status = leyden_flush(drive);
    CHECK(status == LEYDEN_E_GONE);
    CHECK(leyden_flush(drive) == LEYDEN_E_GONE); /* and no signal */
    CHECK(leyden_close(drive) == LEYDEN_OK);
}

int main(int count, char **arguments)
{
    if (count < 2) return 2;
    if (count == 3) {
        wait_until_gone(arguments[1]);
    } else {
        wrong_calls(arguments[1]);
        work(arguments[1]);
    }
    puts("all is well");
    return 0;
}
