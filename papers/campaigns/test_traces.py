"""Tests of what traces.py computes: python3 -m unittest discover papers/campaigns"""

import os
import sys
import unittest

import tomllib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import traces


class Traces(unittest.TestCase):
    def test_a_drive_has_7_percent_to_spare_and_room_for_its_table(self):
        for footprint in [384 << 20, 543_010_816, 2 << 30]:
            self.assertEqual((traces.pages_per_block(footprint), traces.kept_blocks(footprint)), (32, 4))
            row = traces.DIES * 32 * traces.PAGE
            data = (traces.blocks_per_die(footprint) - 4) * row
            self.assertGreaterEqual(data, footprint * 1.07)
            self.assertLess(data - row, footprint * 1.07)

    def test_a_small_drive_has_smaller_blocks_and_some_to_spare(self):
        for footprint, pages, kept in [(12 << 20, 4, 33), (33 << 20, 4, 33), (132_140 << 10, 16, 9), (160 << 20, 16, 9)]:
            self.assertEqual((traces.pages_per_block(footprint), traces.kept_blocks(footprint)), (pages, kept))
            usable = traces.DIES * (2 * pages - 1) * 4096
            self.assertEqual(traces.blocks_per_die(footprint) - kept, -(-footprint // usable) + 8)

    def test_what_is_only_trimmed_has_its_place_once(self):
        profile = {"footprint_bytes": 10_000, "bytes_trimmed": 5_000, "bytes_zeroed": 0, "end_byte": 1 << 30}
        self.assertEqual(traces.footprint(profile), 16_384)
        self.assertEqual(traces.footprint({**profile, "end_byte": 8_192}), 8_192)

    def test_a_scenario_reads_as_toml(self):
        read = tomllib.loads(traces.scenario("some.csv", 1 << 30))
        self.assertTrue(os.path.isfile(read["extends"]))
        self.assertEqual(read["workload"]["trace"], {"path": os.path.abspath("some.csv"), "mode": "closed", "pack": True})
        self.assertIs(read["run"]["stamps"], False)
        self.assertEqual(read["device"]["nand"]["erase"], "437500 ns")
        read = tomllib.loads(traces.scenario("some.csv", 12 << 20, is_stacked=True))
        self.assertEqual((read["workload"]["trace"]["stack"], read["device"]["nand"]["erase"]), ("1 TiB", "54687 ns"))

    def test_harvest_is_compared_with_the_better_under_the_same_protection(self):
        cells = {"fifo 1 %": 0.5, "hexa 1 %": 0.4, "harvest 1 %": 0.45, "fifo 10 %": 0.5, "hexa 10 %": 0.6, "harvest 10 %": 0.6,
                 "hexa all": 0.9, "harvest all": 0.95}
        self.assertEqual([round(point, 3) for point in traces.harvest_over_better(cells)], [0.9, 1.0, 0.95])


if __name__ == "__main__":
    unittest.main()
