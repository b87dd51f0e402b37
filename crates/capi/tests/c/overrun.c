/* A planted slip: more is read than the buffer has room for. */
#include <leyden.h>

#include <stdlib.h>

int main(int argc, char **argv)
{
    const char *const settings[] = {"device.nand.blocks_per_plane=8", "device.nand.dies_per_channel=1"};
    leyden_drive *drive;
    char *buffer = malloc(4096);
    if (argc != 2 || leyden_create(argv[1], "devices/zns", settings, 2) != LEYDEN_OK ||
        leyden_open(argv[1], NULL, NULL, &drive) != LEYDEN_OK)
        return 0;
    leyden_read(drive, 0, buffer, 8192);
    free(buffer);
    return leyden_close(drive) != LEYDEN_OK;
}
