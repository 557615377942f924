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

/// A row for each way to grow: a call's p50, and what is delivered.
pub fn growth(path: &Path, sweeps: &[Sweep]) -> Drawn {
    let area = SVGBackend::new(path, (900, 300 * sweeps.len() as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    for (sweep, row) in sweeps.iter().zip(area.split_evenly((sweeps.len(), 1))) {
        let [cost, rate] = &row.split_evenly((1, 2))[..] else { unreachable!("two columns") };
        lines(cost, &format!("call p50, ns, by {}", sweep.what), &sweep.points, |point, who| Some(point.p50[who]))?;
        if sweep.points.iter().any(|point| point.delivered[0].is_some()) {
            let title = format!("thousand events/s delivered, by {}", sweep.what);
            lines(rate, &title, &sweep.points, |point, who| Some(point.delivered[who]? / 1e3))?;
        }
    }
    area.present()?;
    Ok(())
}

fn lines(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    title: &str,
    points: &[Point],
    of: fn(&Point, usize) -> Option<f64>,
) -> Drawn {
    let series = [0, 1].map(|who| -> Vec<(f64, f64)> {
        points.iter().filter_map(|point| Some((point.x as f64, of(point, who)?))).collect()
    });
    let high = series.iter().flatten().map(|(_, y)| *y).fold(1.0, f64::max);
    let last = points.iter().map(|point| point.x).max().unwrap_or(1) as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(28)
        .y_label_area_size(52)
        .build_cartesian_2d(0.0..last * 1.02, 0.0..high * 1.1)?;
    let label = |value: &f64| value.to_string();
    chart.configure_mesh().x_labels(9).max_light_lines(0).x_label_formatter(&label).y_label_formatter(&label).draw()?;
    for ((name, color), points) in [("ours", OURS), ("peer", PEER)].into_iter().zip(series) {
        chart
            .draw_series(LineSeries::new(points.clone(), color.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], color));
        chart.draw_series(points.into_iter().map(|point| Circle::new(point, 3, color.filled())))?;
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.85)).border_style(BLACK.mix(0.3)).draw()?;
    Ok(())
}
