//! A mapping layer whose units have no content, driven by hand.

use leyden_ftl::page_mapped::{Ended, Ftl};
use leyden_nand::{Content, Ppa};
use leyden_sim::Time;
use serde::{Deserialize, Serialize};

/// The content of units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Nothing;
impl Content for Nothing {}

/// Lets what is under way end.
pub(crate) fn end(ftl: &mut Ftl<Nothing>) {
    while let Some((_, ended)) = ftl.next_ended(Time::ZERO) {
        if let Ended::UserProgram { page, tag, .. } = ended {
            for unit in 0..ftl.units(tag) {
                let place = Ppa(ftl.geometry().first_unit(page).0 + unit);
                let lpn = ftl.medium().lpn(place).unwrap();
                ftl.commit(Time::ZERO, page, unit, lpn);
            }
            ftl.end_program(Time::ZERO, page, tag);
        }
    }
}
