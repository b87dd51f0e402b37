//! A drive that a Python program drives.

use std::sync::{Mutex, MutexGuard, PoisonError};

use leyden_device::{BlockDevice, Command, Completion, Lba, Op, Ssd, Stamp};
use leyden_sim::Time;
use pyo3::prelude::*;
use serde_json::json;

use crate::errors;
use crate::runs::loaded;

/// Commands by their number in a batch: the opcodes of the NVM command set.
const OPS: [(u8, Op); 5] = [
    (0x00, Op::Flush),
    (0x01, Op::Write),
    (0x02, Op::Read),
    (0x08, Op::WriteZeroes),
    (0x09, Op::Trim),
];

/// Events between looks for signals.
const EVENTS_A_SLICE: u32 = 100_000;

struct State {
    ssd: Ssd<Stamp>,
    /// Commands that have ended and were not taken.
    ended: Vec<Completion<Stamp>>,
    is_on: bool,
}

/// A conventional drive: a state machine with a clock of its own.
#[pyclass(frozen, module = "leyden._leyden", name = "NativeDrive")]
pub(crate) struct Drive {
    state: Mutex<State>,
}

impl Drive {
    /// Lets a slice of events happen, up to `limit`; returns the time that is reached, and whether that is all.
    fn advance_slice(&self, limit: Time) -> PyResult<(u64, bool)> {
        let mut state = self.lock();
        let State { ssd, ended, .. } = &mut *state;
        if limit < ssd.now() {
            return Err(errors::config(format!("time is {} ns already", ssd.now().as_ns())));
        }
        for _ in 0..EVENTS_A_SLICE {
            let next = ssd.next_event().filter(|next| *next != Time::MAX && *next <= limit);
            let Some(next) = next else {
                if limit != Time::MAX {
                    ssd.advance(limit, ended);
                }
                return Ok((ssd.now().as_ns(), true));
            };
            let now = ssd.now().max(next);
            ssd.advance(now, ended);
        }
        Ok((ssd.now().as_ns(), false))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Drive {
    #[new]
    #[pyo3(signature = (name, text, sets))]
    fn new(py: Python<'_>, name: &str, text: Option<&str>, sets: Vec<String>) -> PyResult<Self> {
        py.detach(|| {
            let loaded = loaded(name, text, &sets)?;
            let scenario = &loaded.scenario;
            if scenario.device.zoned.is_some() || scenario.host.zoned_block.is_some() {
                let help = "name a scenario without zones; run() and compare() take those";
                return Err(errors::config(format!(
                    "{name} is no conventional drive\n  help: {help}"
                )));
            }
            leyden_run::validate(scenario).map_err(|error| errors::run(&error))?;
            let ssd = Ssd::new(&scenario.device, scenario.seed)
                .map_err(|error| errors::run(&leyden_run::in_device(error)))?;
            Ok(Self { state: Mutex::new(State { ssd, ended: Vec::new(), is_on: true }) })
        })
    }

    #[getter]
    fn now_ns(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.lock().ssd.now().as_ns())
    }

    #[getter]
    fn sectors(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.lock().ssd.capacity_sectors())
    }

    #[getter]
    fn is_on(&self, py: Python<'_>) -> bool {
        py.detach(|| self.lock().is_on)
    }

    /// Submits a batch. Command `i` arrives at `at_ns[i]` and has the opcode `ops[i]`; its tag is `tags[i]`, and what a write
    /// stores is `stamps[i]`. Arrays are bytes in the machine's order.
    #[pyo3(signature = (at_ns, ops, lbas, sectors, stamps, tags))]
    #[expect(clippy::too_many_arguments, reason = "columns of one batch")]
    fn submit(
        &self,
        py: Python<'_>,
        at_ns: &[u8],
        ops: &[u8],
        lbas: &[u8],
        sectors: &[u8],
        stamps: &[u8],
        tags: &[u8],
    ) -> PyResult<()> {
        let count = ops.len();
        let lengths = [at_ns.len(), lbas.len(), stamps.len()].map(|bytes| bytes == 8 * count);
        if lengths.contains(&false) || sectors.len() != 4 * count || tags.len() != 4 * count {
            return Err(errors::config("the columns of a batch have different lengths"));
        }
        let wide = |bytes: &[u8], at: usize| {
            u64::from_ne_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap_or_default())
        };
        let narrow = |bytes: &[u8], at: usize| {
            u32::from_ne_bytes(bytes[4 * at..4 * at + 4].try_into().unwrap_or_default())
        };
        py.detach(|| {
            let mut state = self.lock();
            let State { ssd, ended, .. } = &mut *state;
            let mut commands = Vec::with_capacity(count);
            let mut before = ssd.now();
            for (at, code) in ops.iter().enumerate() {
                let Some((_, op)) = OPS.iter().find(|(known, _)| known == code) else {
                    let text = format!("command {at}: there is no opcode {code:#04x} here");
                    return Err(errors::config(text));
                };
                let time = Time::from_ns(wide(at_ns, at));
                if time < before {
                    return Err(errors::config(format!(
                        "command {at}: it arrives at {} ns, and time is {} ns already",
                        time.as_ns(),
                        before.as_ns()
                    )));
                }
                before = time;
                let command =
                    Command::new(*op, Lba(wide(lbas, at)), narrow(sectors, at), wide(stamps, at));
                commands.push((time, command.tag(narrow(tags, at))));
            }
            for (time, command) in commands {
                if time > ssd.now() {
                    ssd.advance(time, ended);
                }
                ssd.submit(time, command);
            }
            Ok(())
        })
    }

    /// Lets time go on to `until_ns`, or until nothing is under way. A signal's exception leaves the drive at the time reached.
    #[pyo3(signature = (until_ns = None))]
    fn advance(&self, py: Python<'_>, until_ns: Option<u64>) -> PyResult<u64> {
        let limit = until_ns.map_or(Time::MAX, Time::from_ns);
        loop {
            let (now, is_over) = py.detach(|| self.advance_slice(limit))?;
            if is_over {
                return Ok(now);
            }
            py.check_signals()?;
        }
    }

    /// The commands that have ended since the last call, in the order of their ends: tags, opcodes, status codes, when they were
    /// submitted, when they ended, and what the first unit of a read holds. Bytes in the machine's order.
    fn completions(&self, py: Python<'_>) -> [Vec<u8>; 6] {
        py.detach(|| {
            let ended = std::mem::take(&mut self.lock().ended);
            let mut columns: [Vec<u8>; 6] = Default::default();
            for one in &ended {
                let code = OPS.iter().find(|(_, op)| *op == one.op).map_or(0xff, |(code, _)| *code);
                let stamp = one.data().and_then(|data| data.first()).map_or(0, |stamp| stamp.0);
                columns[0].extend(one.tag.to_ne_bytes());
                columns[1].push(code);
                columns[2].extend(one.status.code().to_ne_bytes());
                columns[3].extend(one.submitted.as_ns().to_ne_bytes());
                columns[4].extend(one.time.as_ns().to_ne_bytes());
                columns[5].extend(stamp.to_ne_bytes());
            }
            columns
        })
    }

    /// Cuts the power now. JSON.
    fn cut(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let mut state = self.lock();
            if !state.is_on {
                return Err(errors::config("the power is off already"));
            }
            let now = state.ssd.now();
            state.is_on = false;
            let loss = state.ssd.cut_power(now);
            let State { ssd, ended, .. } = &mut *state;
            ssd.advance(now, ended);
            Ok(json!({
                "time_ns": loss.time.as_ns(),
                "promised_bytes": loss.cost.promised.get(),
                "dump_pages": loss.cost.pages,
                "dump_ns": loss.cost.time.as_ns(),
                "energy_pj": loss.cost.energy.as_pj(),
                "energy_left_pj": loss.energy_left.as_pj(),
                "lost_units": loss.lost.len(),
                "lost_map_pages": loss.lost_map_pages,
                "torn_pages": loss.torn_pages,
            })
            .to_string())
        })
    }

    /// Restores the power now. JSON.
    fn restore(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let mut state = self.lock();
            if state.is_on {
                return Err(errors::config("the power is on"));
            }
            let now = state.ssd.now();
            state.is_on = true;
            let recovery = state.ssd.restore_power(now);
            Ok(json!({
                "ready_at_ns": recovery.ready_at.as_ns(),
                "dump_ns": recovery.dump.as_ns(),
                "recovery_ns": recovery.scan.as_ns(),
                "charge_ns": recovery.charge.as_ns(),
                "pages_scanned": recovery.pages_scanned,
                "pages_restored": recovery.pages_restored,
            })
            .to_string())
        })
    }

    /// The counters of all layers. JSON.
    fn statistics(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let stats = self.lock().ssd.stats();
            serde_json::to_string(&stats).map_err(errors::config)
        })
    }
}
