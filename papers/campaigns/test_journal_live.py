"""Tests of what journal_live.py computes: python3 -m unittest discover papers/campaigns"""

import contextlib
import io
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import journal_live


def run(copied, journal, mib_per_s):
    return {"copied_bytes": copied, "copied_journal_bytes": journal, "mib_per_s": mib_per_s}


class Figures(unittest.TestCase):
    def test_blocks_side_by_side_are_one_pair(self):
        self.assertEqual(journal_live.pairs_of([6, 5, 7, 20, 30, 31]), [[5, 8], [20, 21], [30, 32]])
        self.assertEqual(journal_live.pairs_of([]), [])

    def test_claims_are_of_means(self):
        kept = {
            "ordered, random/false": [run(100, 10, 50.0), run(300, 10, 50.0)], "ordered, random/true": [run(100, 0, 50.0)],
            "journal, random/false": [run(100, 40, 20.0)], "journal, random/true": [run(80, 0, 30.0)],
        }
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            journal_live.claims(kept)
        self.assertEqual(said.getvalue(), "\njournal's share, worst case: 0.400; copies cut: 0.200 to 0.500\n"
                         "bandwidth, ordered: 1.000 (1.000)\nbandwidth, journal: 1.500 (1.500)\n")


if __name__ == "__main__":
    unittest.main()
