//! The devices that the crates above this one run, compiled here, once for all of them.
//!
//! Below `opt-level = 2` a crate uses the generic code that the crates under it have compiled. At higher levels it compiles
//! its own, and this would be compiled for nothing.

use std::hint::black_box;

use leyden_device::{Config, NoData, Payload, Ssd, Stamp, ZnsSsd};

use crate::zoned_block::Stored;
use crate::{HintChannel, PageCache, Powered, ZonedBlock};

/// The block device on two drives of ours.
type OnOurs<P> = ZonedBlock<P, Ssd<Stored<P>>, ZnsSsd<Stored<P>>>;

#[used]
static WITHOUT_DATA: fn() = compile::<NoData>;
#[used]
static WITH_STAMPS: fn() = compile::<Stamp>;

/// Names what is to be compiled. Nobody calls it.
fn compile<P: Payload>() {
    fn device<P: Payload, D: 'static, S: Powered<P, Drive = D> + 'static>() {
        black_box::<fn(S) -> Box<dyn Powered<P, Drive = D>>>(|device| Box::new(device));
    }
    let config = Config::default();
    let _ = black_box((Ssd::<P>::new(&config, 0), ZnsSsd::<P>::new(&config, 0)));
    device::<P, Ssd<P>, Ssd<P>>();
    device::<P, Ssd<P>, HintChannel<Ssd<P>>>();
    device::<P, Ssd<P>, PageCache<P, HintChannel<Ssd<P>>>>();
    device::<P, ZnsSsd<P>, ZnsSsd<P>>();
    device::<P, OnOurs<P>, OnOurs<P>>();
    device::<P, OnOurs<P>, PageCache<P, OnOurs<P>>>();
}
