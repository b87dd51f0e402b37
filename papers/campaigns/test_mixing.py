"""Tests of what mixing.py computes: python3 -m unittest discover papers/campaigns"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import mixing


def program(at, block, page, name):
    return {"ph": "X", "pid": 3, "ts": at, "name": name, "args": {"page": block * mixing.PAGES_PER_BLOCK + page}}


class Mixing(unittest.TestCase):
    def test_only_blocks_that_were_filled_from_their_first_page_count(self):
        whole = [program(page, 7, page, mixing.HOST if page < 10 else mixing.COPY) for page in range(32)]
        late = [program(page, 8, page, mixing.HOST) for page in range(16, 32)]
        early = [program(page, 9, page, mixing.HOST) for page in range(16)]
        self.assertEqual(mixing.filled([*early, *whole, *late]), [10])

    def test_shares_are_of_pages(self):
        # A block of the host's, one of copies, and a mixed one.
        waf, of_host, of_copies = mixing.apart([32, 0, 16])
        self.assertEqual((round(waf, 3), round(of_host, 3), round(of_copies, 3)), (2.0, 0.667, 0.667))


if __name__ == "__main__":
    unittest.main()
