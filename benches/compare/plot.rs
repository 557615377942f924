//! Plots, as SVG.

use super::growth::{Point, Sweep};
use super::latency::Cell;
use super::run::Sample;
use super::subscriber::QUANTILES;
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

type Drawn = Result<(), Box<dyn Error>>;

const OURS: RGBColor = RGBColor(0x1b, 0x7f, 0x4b);
const PEER: RGBColor = RGBColor(0xc4, 0x4e, 0x1c);
const BESIDE: RGBColor = RGBColor(0x4a, 0x5a, 0xa8);

/// Percentiles of a time, flat out, for every number of producers.
pub fn percentiles(path: &Path, title: &str, cells: &[Cell], of: fn(&Sample) -> &Vec<u64>) -> Drawn {
    let area = SVGBackend::new(path, (900, 520)).into_drawing_area();
    area.fill(&WHITE)?;
    let shown: Vec<&Cell> =
        cells.iter().filter(|cell| cell.rate.is_none() && (cell.who == "ours" || cell.who == "peer")).collect();
    let all = || shown.iter().flat_map(|cell| of(&cell.median)).map(|ns| *ns as f64);
    let (low, high) = (all().fold(f64::MAX, f64::min), all().fold(1.0, f64::max));
    let last = (QUANTILES.len() - 1) as f64;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..last, (low * 0.8..high * 1.3).log_scale())?;
    let label = |at: &f64| match QUANTILES.get(at.round() as usize) {
        Some(1.0) => "max".to_owned(),
        Some(quantile) => format!("p{}", (quantile * 1e5).round() / 1e3),
        None => String::new(),
    };
    chart
        .configure_mesh()
        .x_labels(QUANTILES.len())
        .x_label_formatter(&label)
        .y_label_formatter(&|ns| super::latency::time(*ns))
        .max_light_lines(0)
        .draw()?;
    for cell in shown {
        let color = if cell.who == "ours" { OURS } else { PEER };
        let style = color.stroke_width(cell.producers as u32);
        let points = of(&cell.median).iter().enumerate().map(|(at, ns)| (at as f64, *ns as f64));
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(format!("{}, {} producers", cell.who, cell.producers))
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 22, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    area.present()?;
    Ok(())
}

/// Another commit's sweeps, drawn beside.
pub struct Beside {
    pub name: String,
    pub sweeps: Vec<Sweep>,
}

impl Beside {
    pub fn nothing() -> Self {
        Beside { name: String::new(), sweeps: Vec::new() }
    }
}

/// A row for each way to grow: a call's p50 and p99.99, and what is delivered.
pub fn growth(path: &Path, sweeps: &[Sweep], beside: &Beside) -> Drawn {
    let area = SVGBackend::new(path, (1200, 300 * sweeps.len() as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    for (sweep, row) in sweeps.iter().zip(area.split_evenly((sweeps.len(), 1))) {
        let what = &sweep.what;
        let before = beside.sweeps.iter().find(|before| before.what == *what).map_or(&[][..], |before| &before.points);
        let columns: [(String, Of); 3] = [
            (format!("call p50, ns, by {what}"), |point, who| point.p50[who]),
            (format!("call p99.99, us, by {what}"), |point, who| Some(point.p9999[who]? / 1e3)),
            (format!("thousand events/s delivered, by {what}"), |point, who| Some(point.delivered[who]? / 1e3)),
        ];
        for ((title, of), place) in columns.into_iter().zip(row.split_evenly((1, 3))) {
            let line = |points: &[Point], who| -> Line {
                points.iter().filter_map(|point| Some((point.x as f64, of(point, who)?))).collect()
            };
            let series = [
                ("ours", OURS, line(&sweep.points, 0)),
                (beside.name.as_str(), BESIDE, line(before, 0)),
                ("peer", PEER, line(&sweep.points, 1)),
            ];
            if series.iter().any(|(.., points)| !points.is_empty()) {
                lines(&place, &title, series)?;
            }
        }
    }
    area.present()?;
    Ok(())
}

type Line = Vec<(f64, f64)>;
type Of = fn(&Point, usize) -> Option<f64>;

/// On a logarithmic scale where the largest is more than fifty times the smallest.
fn lines(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    title: &str,
    series: [(&str, RGBColor, Line); 3],
) -> Drawn {
    let all = || series.iter().flat_map(|(.., points)| points);
    let (low, high) = all().fold((f64::MAX, 1.0_f64), |(low, high), (_, y)| (low.min(*y), high.max(*y)));
    let last = all().map(|(x, _)| *x).fold(1.0, f64::max);
    let mut builder = ChartBuilder::on(area);
    builder.caption(title, ("sans-serif", 16)).margin(10).x_label_area_size(28).y_label_area_size(58);
    if high > 50.0 * low.max(f64::MIN_POSITIVE) {
        draw(builder.build_cartesian_2d(0.0..last * 1.02, (low * 0.7..high * 1.4).log_scale())?, series)
    } else {
        draw(builder.build_cartesian_2d(0.0..last * 1.02, 0.0..high * 1.1)?, series)
    }
}

fn draw<'a, Y>(
    mut chart: ChartContext<'a, SVGBackend<'a>, Cartesian2d<plotters::coord::types::RangedCoordf64, Y>>,
    series: [(&str, RGBColor, Line); 3],
) -> Drawn
where
    Y: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
{
    let label = |value: &f64| ((value * 100.0).round() / 100.0).to_string();
    chart.configure_mesh().x_labels(9).max_light_lines(0).x_label_formatter(&label).y_label_formatter(&label).draw()?;
    for (name, color, points) in series.into_iter().filter(|(.., points)| !points.is_empty()) {
        chart
            .draw_series(LineSeries::new(points.clone(), color.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], color));
        chart.draw_series(points.into_iter().map(|point| Circle::new(point, 3, color.filled())))?;
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.85)).border_style(BLACK.mix(0.3)).draw()?;
    Ok(())
}
