//! The timeline as a picture: stacked active jobs by level, stalls by cause, throughput; SVG
//! written by hand, for any browser.
//!
//! ```text
//!   title, and what it says in numbers                         legend
//!   |   .--.    active jobs: from L0, from L1, ..., flushes on top
//!   |__/    \___  (dashed: all slots)
//!   cause  ====   a row for each cause of stalls
//!   |  /\/\/\___  thousand operations per second
//!   |             runs in L0, debt, latency (`panels`), as far as they are known
//!   0    10   20 s
//! ```

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Span, Timeline, Work};
use crate::units::three_digits;

const WIDTH: f64 = 1200.0;
pub(super) const LEFT: f64 = 76.0;
pub(super) const RIGHT: f64 = 1040.0;
const JOBS_TOP: f64 = 104.0;
const JOBS_HEIGHT: f64 = 290.0;
const ROW: f64 = 18.0;
const OPS_HEIGHT: f64 = 130.0;
/// Narrowest step drawn; shorter ones are averaged.
const STEP_MIN: f64 = 2.0;

pub(super) const INK: &str = "#1f2933";
pub(super) const FAINT: &str = "#7b8794";
pub(super) const GRID: &str = "#e4e7eb";
const STOP: &str = "#c1121f";
const DELAY: &str = "#f4a261";
const OPS: &str = "#1d3557";
const FLUSH: &str = "#aab4be";
/// By the level that a compaction takes from.
const LEVELS: [[u8; 3]; 7] = [
    [0xd1, 0x49, 0x5b],
    [0xed, 0xae, 0x49],
    [0x8c, 0xb3, 0x69],
    [0x17, 0xa3, 0x98],
    [0x2e, 0x86, 0xab],
    [0x6a, 0x4c, 0x93],
    [0x8d, 0x6e, 0x63],
];
/// The throughput line is smooth over this time; the area below it is not.
const SMOOTH_SECONDS: f64 = 1.0;

/// The picture of `timeline`.
pub(super) fn draw(timeline: &Timeline) -> String {
    let causes: Vec<&str> = timeline
        .stalls
        .iter()
        .map(|s| s.cause.as_str())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let rows_top = JOBS_TOP + JOBS_HEIGHT + 12.0;
    let ops_top = rows_top + ROW * causes.len() as f64 + 26.0;
    let mut page = Page {
        text: String::new(),
        timeline,
        seconds: timeline.ops_per_second.len() as f64 * timeline.step_seconds,
    };
    let ops_bottom = ops_top + OPS_HEIGHT;
    let bottom = ops_bottom + page.panels_height();
    page.open(bottom + 48.0);
    page.heading();
    page.workloads(bottom);
    page.stalls(&causes, rows_top);
    page.jobs();
    page.throughput(ops_top);
    page.panels(ops_bottom + super::panels::GAP);
    page.time_axis(bottom);
    page.legend();
    page.text += "</svg>\n";
    page.text
}

pub(super) struct Page<'a> {
    text: String,
    pub(super) timeline: &'a Timeline,
    seconds: f64,
}

impl Page<'_> {
    fn open(&mut self, height: f64) {
        let _ = writeln!(
            self.text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
             width=\"{WIDTH}\" height=\"{height:.0}\" font-family=\"'Helvetica Neue',Arial,\
             'DejaVu Sans',sans-serif\" font-size=\"12\" fill=\"{INK}\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"
        );
    }

    pub(super) fn x(&self, seconds: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (seconds / self.seconds).clamp(0.0, 1.0)
    }

    pub(super) fn label(&mut self, x: f64, y: f64, style: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace("->", "\u{2192}");
        let _ = writeln!(self.text, "<text x=\"{x:.1}\" y=\"{y:.1}\" {style}>{text}</text>");
    }

    pub(super) fn rect(&mut self, x: f64, y: f64, w: f64, h: f64, style: &str) {
        let _ = writeln!(
            self.text,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" {style}/>"
        );
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.text,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>"
        );
    }

    fn heading(&mut self) {
        let t = self.timeline;
        self.label(LEFT, 26.0, "font-size=\"19\" font-weight=\"600\"", &t.title);
        self.label(LEFT, 46.0, "font-size=\"13\"", &t.load);
        let loads = t.loads();
        let whole: f64 = loads.iter().map(|s| s.to - s.from).sum();
        let busy = loads.iter().map(|&load| {
            let a = t.activity(load);
            let share = (load.to - load.from) / whole.max(f64::MIN_POSITIVE);
            (a.mean_compactions * share, a.over_half * share)
        });
        let (mean, half) = busy.fold((0.0, 0.0), |sum, x| (sum.0 + x.0, sum.1 + x.1));
        let stalled: f64 = t.stalls.iter().map(|s| s.span.to - s.span.from).sum();
        let text = format!(
            "Compactions under load: {} of {} slots on average, more than half of them {:.0}% of \
             the time. Writers held back: {} s.",
            three_digits(mean),
            t.slots,
            half * 100.0,
            three_digits(stalled)
        );
        self.label(LEFT, 66.0, &format!("fill=\"{FAINT}\" font-size=\"13\""), &text);
    }

    /// Where each workload begins, and the time it takes to settle in grey.
    fn workloads(&mut self, bottom: f64) {
        let mut free_from = 0.0;
        for w in &self.timeline.workloads {
            let (from, loaded, settled) =
                (self.x(w.load.from), self.x(w.load.to), self.x(w.settled));
            if settled - loaded >= 1.0 {
                let height = bottom - JOBS_TOP;
                self.rect(loaded, JOBS_TOP, settled - loaded, height, "fill=\"#f5f7fa\"");
            }
            let style = format!("stroke=\"{FAINT}\" stroke-dasharray=\"3 3\"");
            self.line((from, JOBS_TOP - 10.0), (from, bottom), &style);
            // Short workloads after one another would write over each other.
            if from >= free_from {
                let name = &w.name;
                self.label(from + 4.0, JOBS_TOP - 6.0, "font-weight=\"600\"", name);
                free_from = from + 12.0 + 7.0 * name.len() as f64;
                if settled - loaded > 60.0 && loaded >= free_from {
                    let style = format!("fill=\"{FAINT}\"");
                    self.label(loaded + 4.0, JOBS_TOP - 6.0, &style, "settling");
                    free_from = loaded + 60.0;
                }
            }
        }
    }

    /// A panel's frame, its ticks and what they count.
    pub(super) fn panel(&mut self, top: f64, height: f64, most: f64, name: &str) {
        for tick in ticks(most, 5) {
            let y = top + height * (1.0 - tick / most);
            self.line((LEFT, y), (RIGHT, y), &format!("stroke=\"{GRID}\""));
            let style = format!("text-anchor=\"end\" fill=\"{FAINT}\"");
            self.label(LEFT - 8.0, y + 4.0, &style, &plain(tick));
        }
        let middle = top + height / 2.0;
        let style = format!("text-anchor=\"middle\" transform=\"rotate(-90 12 {middle:.1})\"");
        self.label(12.0, middle, &style, name);
    }

    fn jobs(&mut self) {
        let t = self.timeline;
        let group = self.group();
        let stack: Vec<(String, Vec<f64>)> =
            t.jobs.iter().map(|j| (colour(j.work), averaged(&j.active, group))).collect();
        let steps = t.ops_per_second.len().div_ceil(group);
        let sum = |i: usize| -> f64 { stack.iter().map(|(_, active)| active[i]).sum() };
        let most = (0..steps).map(sum).fold(t.slots as f64, f64::max).max(1.0) * 1.04;
        self.panel(JOBS_TOP, JOBS_HEIGHT, most, "active jobs");
        let y = |n: f64| JOBS_TOP + JOBS_HEIGHT * (1.0 - n / most);
        let mut floor = vec![0.0; steps];
        for (style, active) in &stack {
            let roof: Vec<f64> = floor.iter().zip(active).map(|(a, b)| a + b).collect();
            self.band(&floor, &roof, group, y, style);
            floor = roof;
        }
        let slots = y(t.slots as f64);
        let style = format!("stroke=\"{INK}\" stroke-dasharray=\"6 4\"");
        self.line((LEFT, slots), (RIGHT, slots), &style);
        // With a white rim, because it may lie on a colour.
        let style =
            "text-anchor=\"end\" stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\"";
        self.label(RIGHT - 6.0, slots - 5.0, style, &format!("{} compaction slots", t.slots));
        self.line((LEFT, y(0.0)), (RIGHT, y(0.0)), &format!("stroke=\"{INK}\""));
    }

    /// The area between two step lines, where it is one.
    fn band(
        &mut self,
        floor: &[f64],
        roof: &[f64],
        group: usize,
        y: impl Fn(f64) -> f64,
        style: &str,
    ) {
        let width = group as f64 * self.timeline.step_seconds;
        let edges = |i: usize| (self.x(i as f64 * width), self.x((i + 1) as f64 * width));
        let mut path = String::new();
        let mut i = 0;
        while i < roof.len() {
            let empty = |i: usize| roof[i] - floor[i] < 1e-9;
            if empty(i) {
                i += 1;
                continue;
            }
            let begin = i;
            let _ = write!(path, "M{:.1} {:.1}", edges(i).0, y(floor[i]));
            while i < roof.len() && !empty(i) {
                let _ = write!(path, "V{:.1}H{:.1}", y(roof[i]), edges(i).1);
                i += 1;
            }
            for back in (begin..i).rev() {
                let _ = write!(path, "V{:.1}H{:.1}", y(floor[back]), edges(back).0);
            }
            path.push('Z');
        }
        if !path.is_empty() {
            let _ = writeln!(self.text, "<path d=\"{path}\" {style}/>");
        }
    }

    fn stalls(&mut self, causes: &[&str], top: f64) {
        let t = self.timeline;
        for stall in &t.stalls {
            let Span { from, to } = stall.span;
            let (from, to) = (self.x(from), self.x(to));
            let colour = if stall.stop { STOP } else { DELAY };
            let row = causes.iter().position(|c| *c == stall.cause).unwrap_or(0) as f64;
            let width = (to - from).max(0.7);
            let style = format!("fill=\"{colour}\" fill-opacity=\"0.10\"");
            self.rect(from, JOBS_TOP, width, JOBS_HEIGHT, &style);
            let y = top + ROW * row + 2.0;
            self.rect(from, y, width, ROW - 5.0, &format!("fill=\"{colour}\""));
        }
        for (row, cause) in causes.iter().enumerate() {
            let y = top + ROW * row as f64;
            let middle = y + ROW - 6.0;
            let baseline = y + ROW - 1.0;
            self.line((LEFT, baseline), (RIGHT, baseline), &format!("stroke=\"{GRID}\""));
            let seconds: f64 = t
                .stalls
                .iter()
                .filter(|s| s.cause == *cause)
                .map(|s| s.span.to - s.span.from)
                .sum();
            let text = format!("{cause}: {} s", three_digits(seconds));
            self.label(RIGHT + 8.0, middle, "", &text);
        }
        if !causes.is_empty() {
            let middle = top + ROW * causes.len() as f64 / 2.0 + 4.0;
            self.label(LEFT - 8.0, middle, "text-anchor=\"end\"", "stalls");
        }
    }

    fn throughput(&mut self, top: f64) {
        let group = self.group();
        let ops = averaged(&self.timeline.ops_per_second, group);
        let kilo: Vec<f64> = ops.iter().map(|x| x / 1e3).collect();
        let most = kilo.iter().copied().fold(1e-3, f64::max) * 1.08;
        self.panel(top, OPS_HEIGHT, most, "thousand ops/s");
        let y = |n: f64| top + OPS_HEIGHT * (1.0 - n / most);
        let floor = vec![0.0; kilo.len()];
        self.band(&floor, &kilo, group, y, &format!("fill=\"{OPS}\" fill-opacity=\"0.18\""));
        let width = group as f64 * self.timeline.step_seconds;
        let reach = (SMOOTH_SECONDS / width / 2.0) as usize;
        let smooth = (0..kilo.len()).map(|i| {
            let near = &kilo[i.saturating_sub(reach)..kilo.len().min(i + reach + 1)];
            near.iter().sum::<f64>() / near.len() as f64
        });
        let points = smooth.enumerate().map(|(i, k)| {
            let x = self.x((i as f64 + 0.5) * width);
            format!("{x:.1},{:.1}", y(k))
        });
        let points = points.collect::<Vec<_>>().join(" ");
        let style = "fill=\"none\" stroke-width=\"1.4\" stroke-linejoin=\"round\"";
        self.polyline(&points, &format!("stroke=\"{OPS}\" {style}"));
    }

    pub(super) fn polyline(&mut self, points: &str, style: &str) {
        let _ = writeln!(self.text, "<polyline points=\"{points}\" {style}/>");
    }

    fn time_axis(&mut self, bottom: f64) {
        self.line((LEFT, bottom), (RIGHT, bottom), &format!("stroke=\"{INK}\""));
        for tick in ticks(self.seconds, 10) {
            let x = self.x(tick);
            self.line((x, bottom), (x, bottom + 5.0), &format!("stroke=\"{INK}\""));
            let style = format!("text-anchor=\"middle\" fill=\"{FAINT}\"");
            self.label(x, bottom + 19.0, &style, &plain(tick));
        }
        let middle = (LEFT + RIGHT) / 2.0;
        self.label(middle, bottom + 38.0, "text-anchor=\"middle\"", "seconds since the opening");
    }

    /// Kinds of jobs with their means under load, in the order of the stack from its top.
    fn legend(&mut self) {
        let t = self.timeline;
        let x = RIGHT + 8.0;
        let mut y = JOBS_TOP + 12.0;
        self.label(x, y, "font-weight=\"600\"", "mean jobs under load");
        let loads = t.loads();
        let whole: f64 = loads.iter().map(|s| s.to - s.from).sum();
        for job in t.jobs.iter().rev() {
            y += 19.0;
            let area = loads.iter().map(|&load| {
                let of = |s: &&(Work, Span)| s.0 == job.work;
                t.spans.iter().filter(of).map(|s| s.1.shared(load)).sum::<f64>()
            });
            let mean = area.sum::<f64>() / whole.max(f64::MIN_POSITIVE);
            self.rect(x, y - 10.0, 12.0, 12.0, &colour(job.work));
            self.label(x + 18.0, y, "", &format!("{}  {}", job.name, three_digits(mean)));
        }
        if t.stalls.is_empty() {
            return;
        }
        y += 32.0;
        self.label(x, y, "font-weight=\"600\"", "writers");
        for (fill, text) in [(DELAY, "slowed down"), (STOP, "stopped")] {
            y += 19.0;
            self.rect(x, y - 10.0, 12.0, 12.0, &format!("fill=\"{fill}\""));
            self.label(x + 18.0, y, "", text);
        }
    }

    /// Steps drawn as one.
    fn group(&self) -> usize {
        let steps = self.timeline.ops_per_second.len() as f64;
        (steps * STEP_MIN / (RIGHT - LEFT)).ceil().max(1.0) as usize
    }
}

/// How a kind of job is filled: a merge inside a level is paler than one that leaves it.
fn colour(work: Work) -> String {
    match work {
        Work::Flush => format!("fill=\"{FLUSH}\""),
        Work::Compaction { from, to } => {
            let deep = LEVELS[usize::from(from) % LEVELS.len()];
            let pale = |c: u8| c / 2 + 0x7f;
            let [r, g, b] = if from == to { deep.map(pale) } else { deep };
            format!("fill=\"#{r:02x}{g:02x}{b:02x}\"")
        }
    }
}

/// Means of each `group` values.
fn averaged(values: &[f64], group: usize) -> Vec<f64> {
    values.chunks(group).map(|c| c.iter().sum::<f64>() / c.len() as f64).collect()
}

/// Round numbers from 0 up to `most`, about `count` of them.
fn ticks(most: f64, count: u32) -> Vec<f64> {
    let rough = most / f64::from(count);
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough);
    let step = step.unwrap_or(10.0 * power);
    (0..).map(|i| f64::from(i) * step).take_while(|t| *t <= most * 1.000_001).take(50).collect()
}

/// A tick as short as it can be.
fn plain(tick: f64) -> String {
    let text = format!("{tick:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
