"""Tests of what dm_zoned.py and its part in the guest compute without a guest: python3 -m unittest discover papers/campaigns"""

import os
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import dm_zoned
import dm_zoned_guest

JOB = {"zone_mib": 64, "random": 15, "sequential": 66, "reserved": 16, "chunks": 49}


def slow_crc(value, data):
    """The kernel's crc32_le, bit by bit."""
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
    return value


class Metadata(unittest.TestCase):
    def test_layout_counts_every_zone(self):
        layout = dm_zoned_guest.layout_of(JOB)
        self.assertEqual(layout["bitmap_blocks"], 15 + 2 + 66)
        self.assertEqual(layout["meta_blocks"], 1 + 1 + 83)
        # Larger zones have more than one block of bits each.
        self.assertEqual(dm_zoned_guest.layout_of({**JOB, "zone_mib": 256})["bitmap_blocks"], 2 * 83)

    def test_superblock_has_the_kernels_checksum(self):
        layout = dm_zoned_guest.layout_of(JOB)
        for generation in (0, 1, 0x12345678):
            block = dm_zoned_guest.superblock(16384, generation, layout, 0)
            self.assertEqual(len(block), 4096)
            magic, version = struct.unpack_from("<II", block)
            self.assertEqual((magic, version), (ord("D") << 24 | ord("Z") << 16 | ord("B") << 8 | ord("D"), 2))
            stored = struct.unpack_from("<I", block, 44)[0]
            cleared = block[:44] + bytes(4) + block[48:]
            self.assertEqual(stored, slow_crc(generation, cleared))
            # Both identities must not be null.
            self.assertNotEqual(block[80:96], bytes(16))
            self.assertNotEqual(block[96:112], bytes(16))


class Counts(unittest.TestCase):
    HISTOGRAM = """# event histogram
{ dev:     251658240, rwbs: WS      } hitcount:       1536  nr_sector:        800
{ dev:     251658240, rwbs: WSM     } hitcount:          3  nr_sector:         24
{ dev:     251658240, rwbs: R       } hitcount:       1536  nr_sector:        160
{ dev:     251658241, rwbs: W       } hitcount:       1536  nr_sector:        320
{ dev:     251658241, rwbs: RS      } hitcount:          1  nr_sector:          8
{ dev:     254000000, rwbs: WS      } hitcount:       1536  nr_sector:        800
"""

    def test_letters_say_who_it_was(self):
        blocks = dm_zoned_guest.counted(dm_zoned_guest.histogram(self.HISTOGRAM), 251658240, 251658241)
        self.assertEqual(blocks, {
            "conventional_written_host": 100, "conventional_written_metadata": 3, "conventional_read_reclaim": 20,
            "zoned_written_reclaim": 40, "zoned_read_host": 1})

    def test_moves_are_told_from_messages(self):
        log = "\n".join([
            "zoned reclaim: (leyden/1): Chunk 3, move cache zone 2 (weight 9) to seq zone 40",
            "zoned reclaim: (leyden/1): Reclaimed zone 2 in 5 ms",
            "zoned reclaim: (leyden/1): Chunk 4, move data zone 30 (weight 9) to buf zone 5 (weight 1)",
            "zoned reclaim: (leyden/1): reclaim zone 30 interrupted",
            "zoned reclaim: (leyden/1): Chunk 4, move buf zone 5 (weight 1) to data zone 30 (weight 9)",
            "zoned reclaim: (leyden/1): Failed to reclaim zone 5, err -28",
        ])
        self.assertEqual(dm_zoned_guest.moves(log), {
            "begun": 3, "ended_early": 1, "failed": 1, "ended": 1, "out": 1, "append": 1, "into_buffer": 1})

    def test_reclaim_is_added_up_over_both_members(self):
        blocks = {"conventional_read_reclaim": 20, "zoned_read_reclaim": 5, "zoned_written_reclaim": 30,
                  "conventional_written_reclaim": 5, "zoned_written_host": 7, "conventional_written_host": 3}
        counts = dm_zoned.of_kernel({"blocks": blocks, "moves": {"ended": 2, "ended_early": 1}})
        self.assertEqual((counts["read"], counts["written"], counts["direct"], counts["host"]), (25, 35, 7, 10))

    def test_what_reclaim_reads_is_told_by_chunk_and_journal(self):
        job = {"zone_mib": 1, "random": 6, "drives": 2, "zoned_number": "252,1", "journal": [[5 * 256 + 16, 5 * 256 + 32]]}
        move = "[  {}] device-mapper: zoned reclaim: (leyden/1): Chunk {}, move {} zone {} (weight 9) to seq zone 20"
        log = [move.format("1.000010", 5, "cache", 3), move.format("2.000000", 7, "cache", 3), move.format("3.000000", 5, "data", 9)]
        read = " dmz-1 [000] .....  {}: block_bio_queue: {} R {} + {} [kworker]"
        trace = [read.format("1.000020", "252,0", 3 * 2048, 256), read.format("2.000100", "252,0", 3 * 2048, 64),
                 read.format("0.500000", "252,0", 3 * 2048, 8), read.format("3.000001", "252,1", 2048 + 128, 128)]
        found = dm_zoned_guest.reads_of_reclaim(trace, log, job)
        # Zone 9 is the second of the zoned drive; what was read before any message belongs to a chunk that nobody knows.
        self.assertEqual(found, {"by_chunk": {5: 32 + 16, 7: 8}, "journal": 16 + 16, "unknown": 1})

    def test_ours_counts_what_is_filled_as_written(self):
        block = {"block_bytes": 4096, "copied_bytes": 8192, "filled_bytes": 4096, "direct_bytes": 0, "host_bytes": 4096,
                 "metadata_bytes": 0, "reclaimed": 1, "aborted": 0, "copied_journal_bytes": 4096}
        counts = dm_zoned.of_ours({"zoned_block": block})
        self.assertEqual((counts["read"], counts["written"]), (2, 3))

    def test_a_line_says_how_far_they_are_apart(self):
        kernel = [{"read": 25600, "written": 25600, "moved": 2, "given_up": 0},
                  {"read": 51200, "written": 25600, "moved": 2, "given_up": 4}]
        own = {"read": 42240, "written": 25600, "moved": 3, "given_up": 1}
        line = dm_zoned.row("x", kernel, [own])
        self.assertEqual(line, "| x | 150 (100 to 200) | 165 | +10.0 % | 100 | 100 | +0.0 % | 2 / 3 | 2 (0 to 4) / 1 |")
        line = dm_zoned.row("x", kernel, [own, {**own, "read": 34560, "moved": 5}])
        self.assertEqual(line, "| x | 150 (100 to 200) | 150 (135 to 165) | +0.0 % | 100 | 100 | +0.0 % | 2 / 4 (3 to 5) | 2 (0 to 4) / 1 |")


class Requests(unittest.TestCase):
    def test_fill_writes_every_sector_once(self):
        requests = dm_zoned.fill(2)
        spans = sorted((first, first + sectors) for _, sectors, _, first in requests)
        self.assertEqual(spans[0][0], 0)
        self.assertTrue(all(a[1] == b[0] for a, b in zip(spans, spans[1:])))
        self.assertEqual(spans[-1][1], 2 * dm_zoned.SMALL_MIB << 11)

    def test_times_never_go_back_and_the_last_leaves_the_device_idle(self):
        *requests, last = dm_zoned.then_idle(dm_zoned.bursts(2, 1))
        times = [at for _, _, at, _ in requests]
        self.assertEqual(times, sorted(times))
        self.assertEqual((last[0], last[2] - times[-1]), (b"R", 60_000_000))

    def test_a_burst_stays_in_its_chunk(self):
        writes = dm_zoned.bursts(5, 3)[5 * dm_zoned.SMALL_MIB:]
        for burst in range(0, len(writes), 40):
            chunks = {(first + offset) // (dm_zoned.SMALL_MIB << 11)
                      for _, sectors, _, first in writes[burst:burst + 40] for offset in (0, sectors - 1)}
            self.assertEqual(len(chunks), 1)

    def test_bursts_are_of_their_seed(self):
        self.assertEqual(dm_zoned.bursts(2, 1), dm_zoned.bursts(2, 1))
        self.assertNotEqual(dm_zoned.bursts(2, 1), dm_zoned.bursts(2, 2))

    def test_the_journal_is_told_from_classes(self):
        rows = ["time_us,op,lba,len,flags,class", "0,W,8,16,W,journal", "0,W,24,8,W,journal", "0,W,80,8,W,data", "0,W,96,8,W,journal"]
        self.assertEqual(dm_zoned.journal_of(rows), [[1, 4], [12, 13]])

    def test_the_guest_gets_what_leyden_gets(self):
        text = "time_us,op,lba,len,flags,class\n5,W,8,16,WS,journal\n6,F,0,0,FF,-\n9,Z,64,128,NS,data\n"
        requests = dm_zoned.of_trace(text.splitlines())
        self.assertEqual(requests, [(b"W", 16, 0, 8), (b"F", 0, 0, 0), (b"Z", 128, 0, 64)])
        self.assertEqual(dm_zoned.of_trace(dm_zoned.as_text(requests).splitlines()), requests)
        packed = b"".join(dm_zoned.REQUEST.pack(*request) for request in requests)
        self.assertEqual(list(dm_zoned_guest.REQUEST.iter_unpack(packed)), requests)


class Asked(unittest.TestCase):
    def test_only_names_what_there_is(self):
        known = ["fill", "bursts-1", "bursts-12", "journal"]
        self.assertEqual(dm_zoned.chosen(known, None), known)
        self.assertEqual(dm_zoned.chosen(known, ["bursts"]), ["bursts-1", "bursts-12"])
        self.assertEqual(dm_zoned.chosen(known, ["journal", "bursts-1"]), ["bursts-1", "journal"])
        for wrong in ("nonsense", "bursts-", "journal-lazy", ""):
            with self.assertRaises(SystemExit) as ended:
                dm_zoned.chosen(known, ["fill", wrong])
            self.assertEqual(ended.exception.code, f"--only {wrong}: there are fill, bursts-1, bursts-12, journal")

    def test_a_record_is_one(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kernel.json")
            with self.assertRaises(SystemExit) as ended:
                dm_zoned.read_recorded(path)
            self.assertEqual(ended.exception.code, f"{path}: No such file or directory")
            for text in ("", "[]", "{", '{"fill": 1}', '{"fill": {"results": []}}', '{"fill": {"linux": "6.1", "results": [{}]}}'):
                with open(path, "w") as file:
                    file.write(text)
                with self.assertRaises(SystemExit, msg=text) as ended:
                    dm_zoned.read_recorded(path)
                self.assertEqual(ended.exception.code, f"{path} is not what --json has written")


if __name__ == "__main__":
    unittest.main()
