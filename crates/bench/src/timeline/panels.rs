//! The panels of a timeline's picture below the jobs: level 0 and debt as the engine said, and the latency of each
//! second on a scale of powers of ten.

use super::chart::{FAINT, GRID, INK, LEFT, Page, RIGHT};
use crate::units::show_bytes;

const HEIGHT: f64 = 90.0;
/// From the foot of a panel to the head of the next.
pub(super) const GAP: f64 = 26.0;
const L0: &str = "#6a4c93";
const DEBT: &str = "#8d6e63";
/// Median, 99th percentile, slowest.
const LATENCY: [(&str, &str); 3] =
    [("median", "#2e86ab"), ("99%", "#f4a261"), ("slowest", "#c1121f")];

impl Page<'_> {
    /// How high the panels are that this timeline has something for.
    pub(super) fn panels_height(&self) -> f64 {
        let panels = [self.has_l0(), self.has_debt(), !self.timeline.latency_us.is_empty()];
        panels.iter().filter(|has| **has).count() as f64 * (HEIGHT + GAP)
    }

    fn has_l0(&self) -> bool {
        self.timeline.readings.iter().any(|r| r.l0_runs.is_some())
    }

    fn has_debt(&self) -> bool {
        self.timeline.readings.iter().any(|r| r.debt_bytes.is_some())
    }

    /// Draws them from `top` on.
    pub(super) fn panels(&mut self, mut top: f64) {
        let readings = &self.timeline.readings;
        let l0: Vec<(f64, f64)> =
            readings.iter().filter_map(|r| Some((r.seconds, r.l0_runs? as f64))).collect();
        let debt: Vec<(f64, f64)> =
            readings.iter().filter_map(|r| Some((r.seconds, r.debt_bytes? as f64))).collect();
        let largest = |points: &[(f64, f64)]| points.iter().map(|p| p.1).fold(1.0, f64::max);
        if !l0.is_empty() {
            let most = largest(&l0) * 1.08;
            self.panel(top, HEIGHT, most, "runs in L0");
            self.curve(&l0, L0, |n| top + HEIGHT * (1.0 - n / most));
            top += HEIGHT + GAP;
        }
        if !debt.is_empty() {
            let most = largest(&debt);
            self.frame(top, HEIGHT, "debt");
            for share in [0.0, 0.5, 1.0] {
                self.level(top + HEIGHT * (1.0 - share), &show_bytes((most * share) as u64));
            }
            self.curve(&debt, DEBT, |n| top + HEIGHT * (1.0 - n / most));
            top += HEIGHT + GAP;
        }
        if !self.timeline.latency_us.is_empty() {
            self.latency(top);
        }
    }

    fn latency(&mut self, top: f64) {
        let rows = self.timeline.latency_us.clone();
        let figures = || rows.iter().flat_map(|(_, us)| us.iter().copied()).filter(|us| *us > 0.0);
        let (least, most) =
            figures().fold((f64::MAX, 1e-3f64), |(a, b), us: f64| (a.min(us), b.max(us)));
        let (low, high) = (least.min(most).log10().floor(), most.log10().ceil());
        let high = high.max(low + 1.0);
        let y = |us: f64| top + HEIGHT * (1.0 - (us.max(1e-3).log10() - low) / (high - low));
        self.frame(top, HEIGHT, "latency");
        // A label for each power of ten, or for every second one.
        let skip = if high - low > 5.0 { 2 } else { 1 };
        for power in (low as i32..=high as i32).step_by(skip) {
            self.level(y(10f64.powi(power)), &duration(power));
        }
        for (row, (name, colour)) in LATENCY.iter().enumerate() {
            let points: Vec<(f64, f64)> = rows
                .iter()
                .filter(|(_, us)| us[row] > 0.0)
                .map(|(seconds, us)| (seconds + 0.5, us[row]))
                .collect();
            self.curve(&points, colour, y);
            let at = top + 14.0 + 18.0 * row as f64;
            self.rect(RIGHT + 8.0, at - 10.0, 12.0, 12.0, &format!("fill=\"{colour}\""));
            self.label(RIGHT + 26.0, at, "", name);
        }
    }

    /// The name of a panel and its foot.
    fn frame(&mut self, top: f64, height: f64, name: &str) {
        let middle = top + height / 2.0;
        let style = format!("text-anchor=\"middle\" transform=\"rotate(-90 12 {middle:.1})\"");
        self.label(12.0, middle, &style, name);
        let foot = top + height;
        self.line((LEFT, foot), (RIGHT, foot), &format!("stroke=\"{INK}\""));
    }

    fn level(&mut self, y: f64, text: &str) {
        self.line((LEFT, y), (RIGHT, y), &format!("stroke=\"{GRID}\""));
        let style = format!("text-anchor=\"end\" fill=\"{FAINT}\" font-size=\"11\"");
        self.label(LEFT - 6.0, y + 4.0, &style, text);
    }

    /// A line through points in order of time; of those that fall on one another the highest is drawn.
    fn curve(&mut self, points: &[(f64, f64)], colour: &str, y: impl Fn(f64) -> f64) {
        let mut drawn: Vec<(f64, f64)> = Vec::new();
        for &(seconds, value) in points {
            let x = (self.x(seconds) * 2.0).round() / 2.0;
            match drawn.last_mut() {
                Some(last) if last.0 == x => last.1 = last.1.max(value),
                _ => drawn.push((x, value)),
            }
        }
        let text: Vec<String> =
            drawn.iter().map(|&(x, value)| format!("{x:.1},{:.1}", y(value))).collect();
        let style = "fill=\"none\" stroke-width=\"1.4\" stroke-linejoin=\"round\"";
        self.polyline(&text.join(" "), &format!("stroke=\"{colour}\" {style}"));
    }
}

/// A power of ten of microseconds.
fn duration(power: i32) -> String {
    match power {
        ..0 => format!("{} ns", 10i32.pow((power + 3).max(0) as u32)),
        0..3 => format!("{} us", 10i32.pow(power as u32)),
        3..6 => format!("{} ms", 10i32.pow(power as u32 - 3)),
        _ => format!("{} s", 10i64.pow((power as u32 - 6).min(9))),
    }
}
