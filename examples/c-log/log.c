/*
 * A log on a zoned drive, as a database writes one: each record is durable when it is acknowledged, and no block is
 * padded.
 *
 *     log create IMAGE         makes a drive
 *     log append IMAGE COUNT   adds records, and says the number of each one when it is durable
 *     log check IMAGE          counts the records that are there
 */
#include <leyden.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_ZONE 3

/* A record: its number and its length, then bytes that follow from its number. */
struct record {
    uint32_t number;
    uint32_t length;
};

static void check(leyden_status status)
{
    if (status != LEYDEN_OK) {
        fprintf(stderr, "%s: %s\n", leyden_status_name(status), leyden_last_error());
        exit(1);
    }
}

/* Lengths around 900 bytes: those of the paper's puts. */
static uint32_t length_of(uint32_t number)
{
    return 850 + number * 7919 % 100;
}

static unsigned char byte_of(uint32_t number, uint32_t at)
{
    return (unsigned char)(number * 31 + at);
}

static void create(const char *path)
{
    const char *const settings[] = {"device.zoned.zrwa.size=\"256 KiB\"", "device.zoned.zrwa.count=2"};
    check(leyden_create(path, "devices/zns", settings, 2));
}

static leyden_drive *open_drive(const char *path, leyden_identity *identity)
{
    leyden_drive *drive;
    leyden_open_report report;
    memset(&report, 0, sizeof report);
    memset(identity, 0, sizeof *identity);
    report.size = sizeof report;
    identity->size = sizeof *identity;
    check(leyden_open(path, NULL, &report, &drive));
    if (report.was_killed)
        fprintf(stderr, "the last process was killed: %llu commands were run again\n",
                (unsigned long long)report.replayed_commands);
    check(leyden_identify(drive, identity));
    return drive;
}

/* Where the log ends, and how many whole records it has; the block that it ends in is left in `tail`. */
static uint64_t find_end(leyden_drive *drive, const leyden_identity *identity, unsigned char *tail, uint32_t *count)
{
    uint64_t start = LOG_ZONE * identity->zone_size_bytes, at = 0, block = identity->block_bytes;
    unsigned char *zone = malloc(identity->zone_capacity_bytes);
    if (zone == NULL)
        exit(1);
    check(leyden_read(drive, start, zone, identity->zone_capacity_bytes));
    for (*count = 0;; ++*count) {
        struct record head;
        uint32_t i;
        if (at + sizeof head > identity->zone_capacity_bytes)
            break;
        memcpy(&head, zone + at, sizeof head);
        if (head.length != length_of(*count) || head.number != *count ||
            at + sizeof head + head.length > identity->zone_capacity_bytes)
            break;
        for (i = 0; i < head.length && zone[at + sizeof head + i] == byte_of(*count, i); i++)
            ;
        if (i < head.length)
            break;
        at += sizeof head + head.length;
    }
    /* What follows the last whole record in its block is a record that was never acknowledged. */
    memset(tail, 0, block);
    memcpy(tail, zone + at / block * block, at % block);
    free(zone);
    return at;
}

static void append(const char *path, uint32_t count)
{
    leyden_identity identity;
    leyden_drive *drive = open_drive(path, &identity);
    uint64_t start = LOG_ZONE * identity.zone_size_bytes, block = identity.block_bytes, end;
    unsigned char *buffer = malloc(4 * block);
    uint32_t number, last;
    leyden_zone zone;
    if (buffer == NULL)
        exit(1);
    check(leyden_zone_report(drive, LOG_ZONE, 1, &zone, sizeof zone, &number));
    if (zone.state == LEYDEN_ZONE_EMPTY)
        check(leyden_zone_open(drive, LOG_ZONE, LEYDEN_ZONE_ZRWA));
    end = find_end(drive, &identity, buffer, &number);
    for (last = number + count; number < last; number++) {
        struct record head = {number, length_of(number)};
        uint64_t used = end % block, bytes = used + sizeof head + head.length;
        uint64_t blocks = (bytes + block - 1) / block;
        uint32_t i;
        if (end - used + blocks * block > identity.zone_capacity_bytes) {
            fprintf(stderr, "the zone is full\n");
            break;
        }
        memset(buffer + used, 0, blocks * block - used);
        memcpy(buffer + used, &head, sizeof head);
        for (i = 0; i < head.length; i++)
            buffer[used + sizeof head + i] = byte_of(number, i);
        /* The block that the log ends in is written anew, in the protected area: nothing is padded, and nothing
           waits for flash. */
        check(leyden_write(drive, start + end - used, buffer, blocks * block, 0));
        end += sizeof head + head.length;
        memmove(buffer, buffer + (blocks - 1) * block, block);
        if (end % block == 0)
            memset(buffer, 0, block);
        printf("%u\n", number);
        fflush(stdout);
    }
    free(buffer);
    check(leyden_close(drive));
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "create") == 0) {
        create(argv[2]);
    } else if (argc == 4 && strcmp(argv[1], "append") == 0) {
        append(argv[2], (uint32_t)strtoul(argv[3], NULL, 10));
    } else if (argc == 3 && strcmp(argv[1], "check") == 0) {
        leyden_identity identity;
        leyden_drive *drive = open_drive(argv[2], &identity);
        unsigned char *tail = malloc(identity.block_bytes);
        uint32_t count;
        if (tail == NULL)
            return 1;
        find_end(drive, &identity, tail, &count);
        printf("%u records\n", count);
        free(tail);
        check(leyden_close(drive));
    } else {
        fprintf(stderr, "usage: log create IMAGE | append IMAGE COUNT | check IMAGE\n");
        return 2;
    }
    return 0;
}
