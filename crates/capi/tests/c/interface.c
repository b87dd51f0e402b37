#define _XOPEN_SOURCE 700
/* Every call of the interface, used rightly and wrongly. Argument: a folder that is empty. */
#include <leyden.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define KIB 1024ull
#define BLOCK 4096
#define THREADS 6
#define ROUNDS 150

static char path[4096];

static void fail(int line, const char *what)
{
    fprintf(stderr, "line %d: %s (last error: %s)\n", line, what, leyden_last_error());
    exit(1);
}

#define EXPECT(condition) ((condition) ? (void)0 : fail(__LINE__, #condition))
#define OK(call) EXPECT((call) == LEYDEN_OK)
/* The call fails so, and the last error says why, in words of its own. */
#define FAILS(status, call) (EXPECT((call) == (status)), EXPECT(strlen(leyden_last_error()) > 10))

static const char *const SMALL[] = {
    "seed=7", "device.nand.channels=2", "device.nand.dies_per_channel=2", "device.nand.blocks_per_plane=24",
    "device.nand.pages_per_block=64", "device.zoned.zone_size=\"512 KiB\"", "device.zoned.zone_capacity=\"256 KiB\"",
    "device.zoned.max_open=5", "device.zoned.max_active=6", "device.zoned.zrwa.size=\"32 KiB\"",
    "device.zoned.zrwa.count=2", "device.buffer.size=\"1 MiB\"", "device.buffer.protected_size=\"512 KiB\""};
#define SETTINGS (sizeof SMALL / sizeof *SMALL)

static leyden_drive *opened(double speed, uint32_t flags, int was_killed)
{
    leyden_open_options options = {0};
    leyden_open_report report = {0};
    leyden_drive *drive;
    options.size = sizeof options;
    report.size = sizeof report;
    options.speed = speed;
    options.flags = flags;
    OK(leyden_open(path, &options, &report, &drive));
    EXPECT((int)report.was_killed == was_killed);
    return drive;
}

static void fill(unsigned char *buffer, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++)
        buffer[i] = (unsigned char)(seed * 131 + i / 7);
}

static leyden_zone zone_of(leyden_drive *drive, uint32_t number)
{
    leyden_zone zone;
    uint32_t count;
    OK(leyden_zone_report(drive, number, 1, &zone, sizeof zone, &count));
    EXPECT(count == 1 && zone.zone == number);
    return zone;
}

static void versions_and_names(void)
{
    EXPECT(leyden_abi_version() == LEYDEN_ABI_VERSION);
    EXPECT(strchr(leyden_version(), '.') != NULL);
    EXPECT(strcmp(leyden_status_name(LEYDEN_NVME_ZONE_FULL), "Zone Is Full") == 0);
    EXPECT(strcmp(leyden_status_name(LEYDEN_OK), "Success") == 0);
    EXPECT(strcmp(leyden_status_name(12345), "Unknown Status") == 0);
    EXPECT(strcmp(leyden_last_error(), "") == 0);
}

static void images(void)
{
    leyden_drive *drive = (leyden_drive *)path;
    FILE *file;
    char other[5000];
    leyden_open_options options = {0};
    const char *const wrong[] = {"device.nand.channels=0"};
    const char *const unknown[] = {"device.nand.chanels=2"};
    FAILS(LEYDEN_E_ARGUMENT, leyden_create(NULL, "devices/zns", NULL, 0));
    FAILS(LEYDEN_E_ARGUMENT, leyden_create(path, "devices/zns", NULL, 1));
    FAILS(LEYDEN_E_NOT_FOUND, leyden_create(path, "devices/no-such", NULL, 0));
    FAILS(LEYDEN_E_CONFIG, leyden_create(path, "devices/zns", wrong, 1));
    EXPECT(strstr(leyden_last_error(), "channels") != NULL);
    FAILS(LEYDEN_E_CONFIG, leyden_create(path, "devices/zns", unknown, 1));
    FAILS(LEYDEN_E_NOT_FOUND, leyden_create("/no/such/folder/disk", "devices/zns", SMALL, SETTINGS));
    FAILS(LEYDEN_E_NOT_FOUND, leyden_open(path, NULL, NULL, &drive));
    EXPECT(drive == NULL && strstr(leyden_last_error(), path) != NULL);
    OK(leyden_create(path, "devices/zns", SMALL, SETTINGS));
    FAILS(LEYDEN_E_EXISTS, leyden_create(path, "devices/zns", SMALL, SETTINGS));
    FAILS(LEYDEN_E_ARGUMENT, leyden_open(path, NULL, NULL, NULL));
    FAILS(LEYDEN_E_ARGUMENT, leyden_open(path, &options, NULL, &drive)); /* its size was not set */
    options.size = sizeof options;
    options.flags = 1u << 31;
    FAILS(LEYDEN_E_ARGUMENT, leyden_open(path, &options, NULL, &drive));
    options.flags = 0;
    options.speed = -1;
    FAILS(LEYDEN_E_ARGUMENT, leyden_open(path, &options, NULL, &drive));
    /* One opener, in this process, too. */
    drive = opened(0, 0, 0);
    leyden_drive *second;
    FAILS(LEYDEN_E_IN_USE, leyden_open(path, NULL, NULL, &second));
    EXPECT(second == NULL);
    OK(leyden_close(drive));
    OK(leyden_close(NULL));
    leyden_abandon(NULL);
    /* What is no image. */
    snprintf(other, sizeof other, "%s.other", path);
    file = fopen(other, "w");
    EXPECT(file != NULL && fputs("LEYDEN was here, and left no image", file) >= 0 && fclose(file) == 0);
    FAILS(LEYDEN_E_FOREIGN, leyden_open(other, NULL, NULL, &drive));
    file = fopen(other, "w");
    EXPECT(file != NULL && fwrite("LEYDIMG\0\377\0\0\0", 1, 12, file) == 12 && fclose(file) == 0);
    FAILS(LEYDEN_E_FOREIGN, leyden_open(other, NULL, NULL, &drive)); /* a newer version */
    EXPECT(strstr(leyden_last_error(), "255") != NULL);
    EXPECT(remove(other) == 0);
}

static void identity_and_zones(void)
{
    leyden_drive *drive = opened(0, 0, 0);
    leyden_identity it = {0};
    leyden_zone *zones;
    uint32_t count;
    FAILS(LEYDEN_E_ARGUMENT, leyden_identify(drive, &it));
    EXPECT(strstr(leyden_last_error(), "sizeof(leyden_identity)") != NULL);
    it.size = sizeof it;
    FAILS(LEYDEN_E_ARGUMENT, leyden_identify(NULL, &it));
    FAILS(LEYDEN_E_ARGUMENT, leyden_identify(drive, NULL));
    OK(leyden_identify(drive, &it));
    EXPECT(it.size == sizeof it && it.is_zoned && it.block_bytes == BLOCK && it.unit_bytes == BLOCK);
    EXPECT(it.zone_size_bytes == 512 * KIB && it.zone_capacity_bytes == 256 * KIB);
    EXPECT(it.capacity_bytes == it.zone_count * it.zone_size_bytes);
    EXPECT(it.open_max == 5 && it.active_max == 6 && it.zrwa_max == 2 && it.zrwa_size_bytes == 32 * KIB);
    EXPECT(it.zrwa_granularity_bytes == BLOCK && it.region == LEYDEN_REGION_SELECTIVE);
    EXPECT(it.protected_bytes == 512 * KIB && it.plain_bytes == 512 * KIB);
    zones = calloc(it.zone_count, sizeof *zones);
    EXPECT(zones != NULL);
    OK(leyden_zone_report(drive, 0, it.zone_count + 9, zones, sizeof *zones, &count));
    EXPECT(count == it.zone_count);
    for (uint32_t i = 0; i < count; i++)
        EXPECT(zones[i].zone == i && zones[i].state == LEYDEN_ZONE_EMPTY && zones[i].held_bytes == 0 &&
               zones[i].start_bytes == i * it.zone_size_bytes && zones[i].write_pointer_bytes == zones[i].start_bytes);
    FAILS(LEYDEN_E_NOT_FOUND, leyden_zone_report(drive, it.zone_count, 1, zones, sizeof *zones, &count));
    FAILS(LEYDEN_E_ARGUMENT, leyden_zone_report(drive, 0, 1, zones, 8, &count));
    FAILS(LEYDEN_E_ARGUMENT, leyden_zone_report(drive, 0, 1, NULL, sizeof *zones, &count));
    FAILS(LEYDEN_E_ARGUMENT, leyden_zone_report(drive, 0, 1, zones, sizeof *zones, NULL));
    FAILS(LEYDEN_E_NOT_FOUND, leyden_zone_reset(drive, it.zone_count));
    FAILS(LEYDEN_E_ARGUMENT, leyden_zone_open(drive, 0, 2));
    OK(leyden_zone_open(drive, 0, 0));
    EXPECT(zone_of(drive, 0).state == LEYDEN_ZONE_EXPLICITLY_OPEN);
    OK(leyden_zone_close(drive, 0));
    FAILS(LEYDEN_NVME_ZONE_INVALID_TRANSITION, leyden_zone_close(drive, 1));
    for (uint32_t i = 1; i < 6; i++)
        OK(leyden_zone_open(drive, i, 0));
    FAILS(LEYDEN_NVME_TOO_MANY_ACTIVE, leyden_zone_open(drive, 6, 0));
    OK(leyden_zone_finish(drive, 5));
    EXPECT(zone_of(drive, 5).state == LEYDEN_ZONE_FULL && zone_of(drive, 5).write_pointer_bytes == LEYDEN_NO_OFFSET);
    OK(leyden_zone_reset_all(drive));
    EXPECT(zone_of(drive, 5).state == LEYDEN_ZONE_EMPTY);
    free(zones);
    OK(leyden_close(drive));
}

static void data(void)
{
    leyden_drive *drive = opened(0, 0, 0);
    static unsigned char buffer[40 * BLOCK], back[40 * BLOCK];
    uint64_t at = 77, start = 2 * 512 * KIB;
    leyden_stats stats = {0};
    size_t needed;
    char json[64];
    fill(buffer, sizeof buffer, 1);
    OK(leyden_write(drive, start, buffer, 3 * BLOCK, 0));
    OK(leyden_append(drive, 2, buffer + 3 * BLOCK, 2 * BLOCK, LEYDEN_PLP, &at));
    EXPECT(at == start + 3 * BLOCK);
    OK(leyden_read(drive, start, back, 6 * BLOCK));
    EXPECT(memcmp(back, buffer, 5 * BLOCK) == 0 && back[5 * BLOCK] == 0 && back[6 * BLOCK - 1] == 0);
    EXPECT(zone_of(drive, 2).write_pointer_bytes == start + 5 * BLOCK && zone_of(drive, 2).held_bytes == 5 * BLOCK);
    FAILS(LEYDEN_NVME_ZONE_INVALID_WRITE, leyden_write(drive, start, buffer, BLOCK, 0));
    EXPECT(strstr(leyden_last_error(), "Zone Invalid Write") && strstr(leyden_last_error(), "4096 bytes"));
    FAILS(LEYDEN_NVME_INVALID_FIELD, leyden_write(drive, start + 5 * BLOCK, buffer, 900, 0));
    FAILS(LEYDEN_NVME_INVALID_FIELD, leyden_read(drive, start + 5, back, BLOCK));
    FAILS(LEYDEN_NVME_INVALID_FIELD, leyden_read(drive, start, back, 0));
    FAILS(LEYDEN_NVME_LBA_OUT_OF_RANGE, leyden_read(drive, 1ull << 60, back, BLOCK));
    FAILS(LEYDEN_E_ARGUMENT, leyden_read(drive, start, back, 1ull << 40));
    FAILS(LEYDEN_E_ARGUMENT, leyden_write(drive, start, buffer, BLOCK, 8));
    FAILS(LEYDEN_E_ARGUMENT, leyden_write(drive, start, NULL, BLOCK, 0));
    FAILS(LEYDEN_E_ARGUMENT, leyden_append(drive, 2, buffer, BLOCK, 0, NULL));
    FAILS(LEYDEN_NVME_ZONE_BOUNDARY, leyden_read(drive, start + 512 * KIB - BLOCK, back, 2 * BLOCK));
    OK(leyden_write(drive, start + 5 * BLOCK, buffer, BLOCK, LEYDEN_FUA));
    OK(leyden_flush(drive));
    /* An area: the last block of a log is written again and again. */
    OK(leyden_zone_open(drive, 4, LEYDEN_ZONE_ZRWA));
    EXPECT(zone_of(drive, 4).attributes == LEYDEN_ZONE_HAS_ZRWA);
    start = 4 * 512 * KIB;
    for (int round = 0; round < 3; round++) {
        fill(buffer, 9 * BLOCK, 10 + round);
        OK(leyden_write(drive, start + round * BLOCK, buffer, 2 * BLOCK, 0));
    }
    FAILS(LEYDEN_NVME_ZONE_INVALID_OPERATION, leyden_append(drive, 4, buffer, BLOCK, 0, &at));
    OK(leyden_read(drive, start, back, 5 * BLOCK));
    EXPECT(memcmp(back + 2 * BLOCK, buffer, 2 * BLOCK) == 0 && back[4 * BLOCK] == 0);
    FAILS(LEYDEN_NVME_ZONE_INVALID_OPERATION, leyden_zrwa_commit(drive, start));
    FAILS(LEYDEN_NVME_INVALID_FIELD, leyden_zrwa_commit(drive, 0));
    OK(leyden_zrwa_commit(drive, start + 2 * BLOCK));
    EXPECT(zone_of(drive, 4).write_pointer_bytes == start + 2 * BLOCK);
    FAILS(LEYDEN_NVME_ZONE_INVALID_WRITE, leyden_write(drive, start, buffer, BLOCK, 0));
    OK(leyden_write(drive, start + 9 * BLOCK, buffer, 3 * BLOCK, 0)); /* commits what makes room */
    EXPECT(zone_of(drive, 4).write_pointer_bytes == start + 4 * BLOCK);
    stats.size = sizeof stats;
    OK(leyden_get_stats(drive, &stats));
    EXPECT(stats.size == sizeof stats && stats.is_on && stats.flushes == 1 && stats.written_bytes >= 14 * BLOCK);
    EXPECT(stats.reads == 4 && stats.failures > 3 && stats.active_zones == 2 && stats.image_bytes > 0);
    OK(leyden_get_stats_json(drive, NULL, 0, &needed));
    EXPECT(needed > sizeof json);
    OK(leyden_get_stats_json(drive, json, sizeof json, &needed));
    EXPECT(strlen(json) == sizeof json - 1 && json[0] == '{');
    OK(leyden_trim(drive, start, BLOCK));
    OK(leyden_mark(drive, "nobody records this", 19));
    OK(leyden_close(drive));
}

static void power(void)
{
    leyden_drive *drive = opened(0, 0, 0);
    static unsigned char buffer[4 * BLOCK], back[4 * BLOCK];
    leyden_cut_report cut = {0};
    leyden_restore_report restored = {0};
    uint64_t plain = 6 * 512 * KIB, protected = 7 * 512 * KIB;
    size_t total = 77;
    cut.size = sizeof cut;
    restored.size = sizeof restored;
    fill(buffer, sizeof buffer, 3);
    FAILS(LEYDEN_E_NOT_FOUND, leyden_last_cut(drive, &cut));
    FAILS(LEYDEN_E_SWITCH, leyden_restore(drive, 0, NULL));
    OK(leyden_write(drive, plain, buffer, BLOCK, 0));
    OK(leyden_write(drive, protected, buffer, 2 * BLOCK, LEYDEN_PLP));
    OK(leyden_cut(drive, &cut));
    EXPECT(cut.dumped_bytes >= 2 * BLOCK && cut.lost_bytes == 0 && cut.energy_nj > 0 && cut.interrupted_commands == 0);
    FAILS(LEYDEN_E_SWITCH, leyden_cut(drive, NULL));
    FAILS(LEYDEN_NVME_NOT_READY, leyden_read(drive, protected, back, BLOCK));
    FAILS(LEYDEN_NVME_NOT_READY, leyden_write(drive, protected, back, BLOCK, 0));
    FAILS(LEYDEN_NVME_NOT_READY, leyden_flush(drive));
    leyden_zone zone;
    uint32_t count;
    FAILS(LEYDEN_NVME_NOT_READY, leyden_zone_report(drive, 0, 1, &zone, sizeof zone, &count));
    restored.size = 3;
    FAILS(LEYDEN_E_ARGUMENT, leyden_restore(drive, 0, &restored)); /* before anything is done */
    restored.size = sizeof restored;
    OK(leyden_restore(drive, 0, &restored));
    EXPECT(restored.ready_ns > 0 && restored.restored_pages > 0);
    OK(leyden_read(drive, protected, back, 2 * BLOCK));
    EXPECT(memcmp(back, buffer, 2 * BLOCK) == 0);
    EXPECT(zone_of(drive, 6).held_bytes == 0 && zone_of(drive, 7).held_bytes == 2 * BLOCK);
    OK(leyden_lost_ranges(drive, NULL, 0, 0, &total));
    EXPECT(total == 0);
    /* A process that dies is a power cut. */
    OK(leyden_write(drive, plain, buffer, BLOCK, 0));
    OK(leyden_write(drive, protected + 2 * BLOCK, buffer, BLOCK, LEYDEN_PLP));
    leyden_abandon(drive);
    drive = opened(0, LEYDEN_OPEN_POWER_OFF, 1);
    OK(leyden_last_cut(drive, &cut));
    FAILS(LEYDEN_NVME_NOT_READY, leyden_read(drive, protected, back, BLOCK));
    OK(leyden_restore(drive, 0, NULL));
    EXPECT(zone_of(drive, 6).held_bytes == 0 && zone_of(drive, 7).held_bytes == 3 * BLOCK);
    OK(leyden_close(drive));
    /* With hardly a bank, what was promised is lost, and said to be. */
    static unsigned char large[40 * BLOCK];
    leyden_range lost[2];
    drive = opened(0, 0, 0);
    OK(leyden_cut(drive, NULL));
    FAILS(LEYDEN_E_CONFIG, leyden_restore(drive, 1, NULL));
    OK(leyden_restore(drive, 10000, NULL));
    OK(leyden_write(drive, plain, large, sizeof large, LEYDEN_PLP));
    OK(leyden_cut(drive, &cut));
    EXPECT(cut.lost_bytes >= sizeof large && cut.dumped_bytes == 0 && cut.lost_ranges > 0);
    OK(leyden_lost_ranges(drive, lost, 2, sizeof *lost, &total));
    EXPECT(total == cut.lost_ranges && lost[0].offset_bytes % BLOCK == 0 && lost[0].length_bytes < cut.lost_bytes);
    OK(leyden_restore(drive, 0, NULL));
    leyden_abandon(drive);
}

/* Threads, each with zones of its own, and one flush in ten. */
struct worker {
    leyden_drive *drive;
    uint32_t zone;
    int rounds;
};

static void *work(void *argument)
{
    struct worker *it = argument;
    unsigned char buffer[2 * BLOCK], back[2 * BLOCK];
    uint64_t start = it->zone * 512 * KIB, wp = 0;
    for (int round = 0; round < it->rounds; round++) {
        uint64_t at;
        fill(buffer, sizeof buffer, it->zone * 1000 + round);
        if (wp + sizeof buffer > 256 * KIB) {
            OK(leyden_zone_reset(it->drive, it->zone));
            wp = 0;
        }
        if (round % 2) {
            OK(leyden_append(it->drive, it->zone, buffer, sizeof buffer, round % 3 ? 0 : LEYDEN_PLP, &at));
            EXPECT(at == start + wp);
        } else {
            OK(leyden_write(it->drive, start + wp, buffer, sizeof buffer, round % 5 ? 0 : LEYDEN_FUA));
        }
        OK(leyden_read(it->drive, start + wp, back, sizeof back));
        EXPECT(memcmp(back, buffer, sizeof back) == 0);
        wp += sizeof buffer;
        if (round % 10 == 9)
            OK(leyden_flush(it->drive));
        FAILS(LEYDEN_NVME_INVALID_FIELD, leyden_read(it->drive, start, back, 1));
    }
    return NULL;
}

static void threads(double speed, int rounds)
{
    leyden_drive *drive;
    pthread_t ids[THREADS];
    struct worker workers[THREADS];
    EXPECT(remove(path) == 0);
    OK(leyden_create(path, "devices/zns", SMALL, SETTINGS));
    drive = opened(speed, 0, 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){drive, i, rounds};
        EXPECT(pthread_create(&ids[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_join(ids[i], NULL) == 0);
    leyden_stats stats = {0};
    stats.size = sizeof stats;
    OK(leyden_get_stats(drive, &stats));
    EXPECT(stats.writes == (uint64_t)(THREADS * rounds) && stats.failures == 0);
    OK(leyden_close(drive));
}

/* A cut while others are at work: each of their calls ends, well or with a status that says so. */
static void *write_until_cut(void *argument)
{
    struct worker *it = argument;
    unsigned char buffer[BLOCK] = {1};
    for (;;) {
        uint64_t at;
        leyden_status status = leyden_append(it->drive, it->zone, buffer, sizeof buffer, LEYDEN_PLP, &at);
        if (status == LEYDEN_NVME_ZONE_FULL || status == LEYDEN_NVME_ZONE_BOUNDARY) {
            status = leyden_zone_reset(it->drive, it->zone);
            if (status == LEYDEN_OK)
                it->rounds = 0;
        } else if (status == LEYDEN_OK) {
            it->rounds++;
        }
        if (status == LEYDEN_E_POWER_LOST || status == LEYDEN_NVME_NOT_READY)
            return NULL;
        OK(status);
    }
}

static void cut_amid(double speed)
{
    leyden_drive *drive;
    pthread_t ids[THREADS];
    struct worker workers[THREADS];
    leyden_stats stats = {0};
    stats.size = sizeof stats;
    EXPECT(remove(path) == 0);
    OK(leyden_create(path, "devices/zns", SMALL, SETTINGS));
    drive = opened(speed, 0, 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){drive, i, 0};
        EXPECT(pthread_create(&ids[i], NULL, write_until_cut, &workers[i]) == 0);
    }
    do
        OK(leyden_get_stats(drive, &stats));
    while (stats.writes < 300);
    OK(leyden_cut(drive, NULL));
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_join(ids[i], NULL) == 0);
    OK(leyden_restore(drive, 0, NULL));
    for (uint32_t i = 0; i < THREADS; i++) {
        /* What was acknowledged is there; a command that was interrupted may have happened, too: an append, or a reset
           of a full zone. */
        uint64_t held = zone_of(drive, i).held_bytes / BLOCK, acknowledged = (uint64_t)workers[i].rounds;
        EXPECT(held == acknowledged || held == acknowledged + 1 ||
               (held == 0 && acknowledged == 256 * KIB / BLOCK));
    }
    OK(leyden_zone_reset_all(drive)); /* a zone may be full, and others append to it next */
    OK(leyden_close(drive));
}

/* Asks the control socket, and expects `answer` in what it says. */
static int ask(int client, const char *question, const char *answer)
{
    char line[8192];
    size_t got = 0;
    EXPECT(write(client, question, strlen(question)) == (ssize_t)strlen(question));
    do {
        ssize_t more = read(client, line + got, sizeof line - 1 - got);
        EXPECT(more > 0);
        got += (size_t)more;
    } while (line[got - 1] != '\n');
    line[got] = 0;
    return strstr(line, answer) != NULL;
}

static void control(void)
{
    leyden_drive *drive = opened(0, LEYDEN_OPEN_CONTROL, 0);
    unsigned char block[BLOCK] = {5}, back[BLOCK];
    uint64_t at;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT((size_t)snprintf(address.sun_path, sizeof address.sun_path, "%s.sock", path) < sizeof address.sun_path);
    EXPECT(client >= 0 && connect(client, (struct sockaddr *)&address, sizeof address) == 0);
    OK(leyden_append(drive, 0, block, BLOCK, LEYDEN_PLP, &at));
    EXPECT(ask(client, "{\"ask\":\"status\"}\n", "\"is_on\":true"));
    EXPECT(ask(client, "{\"ask\":\"cut\"}\n", "\"answer\":\"cut\""));
    FAILS(LEYDEN_NVME_NOT_READY, leyden_read(drive, at, back, BLOCK));
    EXPECT(ask(client, "{\"ask\":\"cut\"}\n", "off already"));
    EXPECT(ask(client, "{\"ask\":\"restore\"}\n", "\"answer\":\"restored\""));
    OK(leyden_read(drive, at, back, BLOCK));
    EXPECT(back[0] == 5);
    EXPECT(ask(client, "{\"ask\":\"stop\"}\n", "closes it"));
    /* A client that stays keeps nobody from closing and opening. */
    OK(leyden_close(drive));
    drive = opened(0, 0, 0);
    EXPECT(ask(client, "{\"ask\":\"status\"}\n", "gone"));
    close(client);
    OK(leyden_close(drive));
}

static void recordings(void)
{
    leyden_open_options options = {0};
    leyden_drive *drive;
    unsigned char block[BLOCK] = {6}, back[BLOCK];
    char record[5000];
    uint64_t at;
    FILE *file;
    snprintf(record, sizeof record, "%s.leyrec", path);
    options.size = sizeof options;
    options.record_path = record;
    OK(leyden_open(path, &options, NULL, &drive));
    OK(leyden_append(drive, 0, block, BLOCK, 0, &at));
    OK(leyden_read(drive, at, back, BLOCK));
    EXPECT(back[0] == 6);
    OK(leyden_mark(drive, "promised", 8));
    OK(leyden_close(drive));
    FAILS(LEYDEN_E_EXISTS, leyden_open(path, &options, NULL, &drive));
    EXPECT(strstr(leyden_last_error(), record) != NULL);
    file = fopen(record, "r");
    EXPECT(file != NULL && fread(back, 1, 7, file) == 7 && memcmp(back, "LEYDREC", 7) == 0);
    EXPECT(fclose(file) == 0);
}

static void conventional(void)
{
    leyden_drive *drive;
    leyden_identity it = {0};
    unsigned char buffer[BLOCK], back[BLOCK];
    leyden_zone zone;
    uint32_t count;
    uint64_t at;
    const char *const settings[] = {"device.nand.blocks_per_plane=64", "device.ftl.over_provisioning=\"60 %\""};
    EXPECT(remove(path) == 0);
    OK(leyden_create(path, "devices/hexa", settings, 2));
    drive = opened(0, 0, 0);
    it.size = sizeof it;
    OK(leyden_identify(drive, &it));
    EXPECT(!it.is_zoned && it.block_bytes == 512 && it.zone_count == 0 && it.region == LEYDEN_REGION_FULL);
    fill(buffer, sizeof buffer, 9);
    OK(leyden_write(drive, 512, buffer, 512 * 3, 0));
    OK(leyden_read(drive, 0, back, BLOCK));
    EXPECT(back[0] == 0 && memcmp(back + 512, buffer, 512 * 3) == 0);
    FAILS(LEYDEN_E_NOT_ZONED, leyden_zone_reset(drive, 0));
    FAILS(LEYDEN_E_NOT_ZONED, leyden_zone_report(drive, 0, 1, &zone, sizeof zone, &count));
    FAILS(LEYDEN_E_NOT_ZONED, leyden_append(drive, 0, buffer, BLOCK, 0, &at));
    FAILS(LEYDEN_E_NOT_ZONED, leyden_zrwa_commit(drive, BLOCK));
    OK(leyden_trim(drive, 0, it.capacity_bytes));
    OK(leyden_read(drive, 0, back, BLOCK));
    EXPECT(back[512] == 0);
    OK(leyden_close(drive));
    /* What is left of an image that was cut short. */
    EXPECT(truncate(path, 100000) == 0);
    FAILS(LEYDEN_E_DAMAGED, leyden_open(path, NULL, NULL, &drive));
    EXPECT(drive == NULL && truncate(path, 5) == 0);
    FAILS(LEYDEN_E_FOREIGN, leyden_open(path, NULL, NULL, &drive));
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    snprintf(path, sizeof path, "%s/disk.leyden", argv[1]);
    versions_and_names();
    images();
    identity_and_zones();
    data();
    power();
    threads(0, ROUNDS);
    threads(1, 20);
    cut_amid(0);
    cut_amid(1);
    control();
    recordings();
    conventional();
    puts("all is well");
    return 0;
}
