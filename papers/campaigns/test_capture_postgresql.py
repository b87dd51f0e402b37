"""Tests of what capture_postgresql.py computes: python3 -m unittest discover papers/campaigns"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import capture_postgresql as capture

# Lines of PostgreSQL 15's pg_waldump.
RECORDS = [
    "rmgr: Heap        len (rec/tot):     54/    54, tx:        740, lsn: 0/01000028, prev 0/00FFFFF0, desc: LOCK off 3,"
    " blkref #0: rel 1663/5/1259 blk 0",
    "rmgr: Heap        len (rec/tot):     54/    54, tx:        740, lsn: 0/01000060, prev 0/01000028, desc: UPDATE off 3,"
    " blkref #0: rel 1663/5/16384 blk 2 FPW, blkref #1: rel 1663/5/16384 fork vm blk 0",
    "rmgr: Transaction len (rec/tot):     34/    34, tx:        740, lsn: 0/010000A0, prev 0/01000060, desc: COMMIT",
    "rmgr: Heap        len (rec/tot):     54/    54, tx:        741, lsn: 1/00000028, prev 0/010000A0, desc: HOT_UPDATE off 3,"
    " blkref #0: rel 1663/5/16384 blk 9",
]


def extents(path):
    """Files of two extents: 3 pages at 1 MiB, and the rest a MiB on."""
    if path.endswith("1259"):
        raise FileNotFoundError(path)
    at = 1 << 21 if path.endswith("_vm") else 1 << 20
    return [(0, at, 3 * 8192), (3 * 8192, at + (1 << 20), 64 * 8192)]


class Announcements(unittest.TestCase):
    def test_a_page_is_announced_when_its_record_is_flushed(self):
        places = capture.Places("/data", extents)
        seen = [(0x01000028, 10), (0x01000061, 20), (0x1_0000_0100, 30)]
        pages = list(capture.announced(RECORDS, seen, places))
        first, map_page, second = (1 << 20) // 512 + 2 * 16, (1 << 21) // 512, (2 << 20) // 512 + 6 * 16
        # The file of the first record is gone; the second is flushed at 20, the last at 30.
        self.assertEqual(pages, [(20, first), (20, map_page), (30, second)])
        self.assertEqual(list(capture.announced(RECORDS, seen[:1], places)), [])

    def test_files_go_on_in_others(self):
        asked = []
        places = capture.Places("/data", lambda path: asked.append(path) or [(0, 0, 1 << 20)])
        self.assertEqual(places.sector("1663", "5", "7", None, 131_073), 16)
        self.assertEqual(places.sector("1664", "0", "8", None, 1), 16)
        self.assertEqual(asked, ["/data/base/5/7.1", "/data/global/8"])
        self.assertIsNone(places.sector("1663", "5", "7", None, 131_072 + 128), "beyond the extents")

    def test_the_first_since_the_last_write_is_a_hint(self):
        pages = [(1, 16), (2, 16), (3, 32), (5, 16), (6, 32)]
        self.assertEqual(list(capture.hints(pages, [(4, 8, 16)])), [(1, 16), (3, 32), (5, 16)])

    def test_writes_are_told_from_flushes(self):
        lines = [
            " fio-71 [001] ..... 9.000123: block_bio_queue: 7,0 WS 341768 + 8 [postgres]",
            " fio-71 [001] ..... 9.000124: block_bio_queue: 7,0 FF 0 + 0 [postgres]",
            " fio-71 [001] ..... 9.000125: block_bio_queue: 7,0 R 16 + 8 [postgres]",
        ]
        self.assertEqual(list(capture.writes_of(lines)), [(9_000_123, 341_768, 8)])
        self.assertEqual(capture.first_time(lines), 9_000_123)


if __name__ == "__main__":
    unittest.main()
