//! DiskSim's ASCII columns in MQSim's units: `arrival_ns device lba sectors type`, where type 0 is
//! a write and 1 a read (MQSim's README, "Trace format").
//!
//! **What lives here**: its parser. **What doesn't**: its writer.
//!
//! **Invariants**: whole nanoseconds only; DiskSim's own decimal milliseconds are refused, as
//! reading them as nanoseconds would be silent nonsense.

use leyden_device::{Lba, Op};
use leyden_sim::Time;

use crate::{Class, Request};

use super::super::context::Context;
use super::super::error::ErrorKind;
use super::super::num::{decimal, words};
use super::LineParser;

const WANT: &str = "arrival_ns device lba sectors type";

#[derive(Default)]
pub(crate) struct DiskSim;

impl LineParser for DiskSim {
    fn sniff(line: &[u8]) -> Result<bool, ErrorKind> {
        Ok(words(line).count() == 5 && words(line).all(|word| decimal(word).is_ok()))
    }

    fn line(
        &mut self,
        line: &[u8],
        context: &mut Context,
        out: &mut Vec<Request>,
    ) -> Result<(), ErrorKind> {
        let mut columns = [&[][..]; 5];
        let mut got = 0;
        for word in words(line) {
            if let Some(column) = columns.get_mut(got) {
                *column = word;
            }
            got += 1;
        }
        if got != columns.len() {
            return Err(ErrorKind::Columns { got, want: WANT });
        }
        let [time, device, lba, sectors, kind] = columns;
        let ns = decimal(time)
            .map_err(|e| e.of("arrival_ns", "whole nanoseconds (DiskSim's own traces use ms)"))?;
        decimal(device).map_err(|e| e.of("device", "a number"))?;
        let lba = decimal(lba).map_err(|e| e.of("lba", "a number of 512-byte sectors"))?;
        let sectors = decimal(sectors).map_err(|e| e.of("sectors", "a number of sectors"))?;
        let sectors =
            u32::try_from(sectors).map_err(|_| ErrorKind::Overflow { column: "sectors" })?;
        let op = match kind {
            b"0" => Op::Write,
            b"1" => Op::Read,
            _ => {
                return Err(ErrorKind::Field { column: "type", want: "0 (write) or 1 (read)" });
            }
        };
        let Some(base) = context.device(device)? else {
            return Ok(());
        };
        let request = Request {
            at: Time::from_ns(ns),
            op,
            lba: Lba(lba),
            sectors,
            fua: false,
            class: Class::Unknown,
        };
        context.emit(out, base, request)
    }
}
