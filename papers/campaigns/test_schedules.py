"""Tests of what schedules.py computes: python3 -m unittest discover papers/campaigns"""

import os
import sys
import unittest

import tomllib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import schedules


class Table(unittest.TestCase):
    def test_a_ratio_is_over_the_better_of_the_same_seed(self):
        lines = ["seed,device.buffer.schedule,host.iops", "1,fifo,100", "1,hexa,200", "1,harvest,210", "2,harvest,90", "2,fifo,100", "2,hexa,80"]
        of = schedules.ratios(schedules.iops_of(lines))
        self.assertEqual([round(ratio, 3) for ratio in of], [1.05, 0.9])

    def test_what_is_behind_is_bold(self):
        self.assertEqual(schedules.cell([1.05, 1.15]), "+10.0 (+5.0 to +15.0)")
        self.assertEqual(schedules.cell([0.97, 0.99]), "**-2.0 (-3.0 to -1.0)**")
        self.assertEqual(schedules.cell([0.99]), "-1.0 (-1.0 to -1.0)")

    def test_a_scenario_is_what_its_jobs_say(self):
        for jobs in schedules.WORK.values():
            read = tomllib.loads(schedules.scenario(jobs))
            self.assertEqual(read["workload"]["job"], [{**schedules.JOB, **job} for job in jobs])
            self.assertTrue(os.path.isfile(read["extends"]))


    def test_a_cyclic_log_lies_beside_other_data_in_every_work(self):
        for jobs in schedules.CYCLIC.values():
            read = tomllib.loads(schedules.scenario(jobs, "cyclic-log"))
            self.assertTrue(os.path.isfile(read["extends"]))
            self.assertEqual(len(read["workload"]["job"]), len(jobs))
            self.assertTrue(any(job["pattern"] == "sequential" for job in read["workload"]["job"]))

    def test_protections_are_written_as_configurations_have_them(self):
        self.assertEqual([schedules.protection(share) for share in ["all", "journal", "1 %"]],
                         ["full", "journal", '{ policy = "partial", protected = "1 %" }'])


if __name__ == "__main__":
    unittest.main()
