"""Tests of what victims.py computes: python3 -m unittest discover papers/campaigns"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import victims


def record(victim, seed, waf):
    return {"seed": seed, "flash": {"waf": waf}, "config": {"device": {"ftl": {"gc": {"victim": {"policy": victim}}}}}}


class Figures(unittest.TestCase):
    def test_wafs_stand_in_the_order_of_seeds(self):
        runs = [record("greedy", 2, 3.0), record("z_greedy", 1, 1.5), record("greedy", 1, 4.0), record("z_greedy", 2, 2.5)]
        self.assertEqual(victims.wafs_of({"runs": runs}), {"greedy": [4.0, 3.0], "z_greedy": [1.5, 2.5]})

    def test_the_best_without_hints_is_that_of_each_seed(self):
        block = {name: [2.0, 2.0] for name in victims.BLOCK} | {"z_deadline": [1.5, 3.0]}
        point = victims.point_of({"greedy": [4.0, 3.0], "cost_benefit": [3.0, 5.0]}, block)
        self.assertEqual(point["plain"], [3.0, 3.0])
        self.assertEqual(victims.excess(point, "plain"), [-50.0, 0.0])
        self.assertEqual(victims.cell(victims.excess(point, "z_greedy")), "+12.5 (-25.0 to +50.0)")


if __name__ == "__main__":
    unittest.main()
