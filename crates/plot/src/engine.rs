//! The interpreter in which the chart library draws.
//!
//! It has no way to files or the network. Memory and time are bounded: data may come from a page that
//! somebody else made.

use std::io::Read as _;
use std::rc::Rc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use leyden_report::{FIGURE_SCRIPT, FigureData, PACKED_VEGA};
use rquickjs::{CatchResultExt as _, CaughtError, Context, Ctx, Function, Runtime};
use serde::Serialize;

use crate::{Fonts, Paper, PlotError};

const HOST: &str = include_str!("../assets/host.js");
const DRAW: &str = include_str!("../assets/draw.js");

/// The chart library's calls nest deeply, and those of a build without optimisation need most room.
const STACK_BYTES: usize = 64 << 20;
const MEMORY_BYTES: usize = 1 << 30;
/// A figure takes less than a second; an endless one is given up.
const LONGEST: Duration = Duration::from_mins(1);

/// The input of the script.
#[derive(Serialize)]
struct Input<'a> {
    data: &'a serde_json::value::RawValue,
    figure: &'a str,
    paper: &'a Paper,
}

/// The figure as SVG.
pub(crate) fn draw(
    data: &FigureData,
    figure: &str,
    paper: &Paper,
    fonts: &Fonts,
) -> Result<String, PlotError> {
    let input = serde_json::to_string(&Input { data: data.json(), figure, paper })
        .map_err(|error| PlotError::Draw(error.to_string()))?;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let drawing = thread
            .spawn_scoped(scope, || run(&input, fonts))
            .map_err(|error| PlotError::Draw(error.to_string()))?;
        drawing.join().unwrap_or_else(|_| Err(PlotError::Draw("the interpreter panicked".into())))
    })
}

fn run(input: &str, fonts: &Fonts) -> Result<String, PlotError> {
    let runtime = Runtime::new()?;
    runtime.set_max_stack_size(STACK_BYTES / 2);
    runtime.set_memory_limit(MEMORY_BYTES);
    #[expect(
        clippy::disallowed_methods,
        reason = "a drawing without end is given up; no result has the time"
    )]
    let start = Instant::now();
    runtime.set_interrupt_handler(Some(Box::new(move || start.elapsed() > LONGEST)));
    let context = Context::full(&runtime)?;
    let fonts = Rc::new(fonts.clone());
    context.with(|ctx| {
        let measure = move |text: String, family: String, bold: bool| -> f64 {
            fonts.width_em(&text, &family, bold)
        };
        ctx.globals().set("emWidth", Function::new(ctx.clone(), measure)?)?;
        ctx.globals().set("input", input)?;
        for script in [HOST, &library()?, FIGURE_SCRIPT, "globalThis.figures = figures;", DRAW] {
            ctx.eval::<(), _>(script).catch(&ctx).map_err(|error| told(&error))?;
        }
        Ok::<(), PlotError>(())
    })?;
    let unfinished = || {
        let why = if start.elapsed() > LONGEST {
            format!("it took more than {} s", LONGEST.as_secs())
        } else {
            "it ran out of memory, or waits for data from elsewhere".to_owned()
        };
        PlotError::Draw(why)
    };
    while runtime.execute_pending_job().map_err(|_| unfinished())? {}
    context.with(|ctx| result(&ctx))?.ok_or_else(unfinished)
}

/// The drawing; none if the script has not ended.
fn result(ctx: &Ctx<'_>) -> Result<Option<String>, PlotError> {
    if let Some(failed) = ctx.globals().get::<_, Option<String>>("failed")? {
        return Err(PlotError::Draw(failed));
    }
    Ok(ctx.globals().get("drawn")?)
}

fn told(error: &CaughtError<'_>) -> PlotError {
    PlotError::Draw(error.to_string())
}

/// The chart library, unpacked.
fn library() -> Result<String, PlotError> {
    let broken = |error: &dyn std::fmt::Display| PlotError::Draw(format!("the library: {error}"));
    let packed = BASE64_STANDARD.decode(PACKED_VEGA.trim()).map_err(|error| broken(&error))?;
    let mut library = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut library).map_err(|error| broken(&error))?;
    Ok(library)
}
