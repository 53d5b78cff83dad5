//! Where on a circle most points lie.

/// The middle of those points that the densest window of twice `tolerance` holds, on a circle of
/// one `period`; `None` without points. All points lie from 0 to the period.
pub(super) fn densest(points: &[f64], period: f64, tolerance: f64) -> Option<f64> {
    let mut around: Vec<f64> = points.to_vec();
    around.extend(points.iter().map(|point| point + period));
    around.sort_unstable_by(f64::total_cmp);
    let windows = around.iter().take(points.len()).enumerate();
    let windows = windows.map(|(from, start)| {
        let rest = around.get(from..).unwrap_or_default();
        let held = rest.partition_point(|point| *point <= start + 2.0 * tolerance);
        // A window wider than the circle would hold a point twice.
        rest.get(..held.min(points.len())).unwrap_or_default()
    });
    let fullest = windows.max_by_key(|held| held.len())?;
    let middle = fullest.get(fullest.len() / 2)?;
    Some(middle.rem_euclid(period))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_densest_window_may_lie_across_the_seam() {
        let phase = densest(&[1.98, 0.01, 0.02, 1.0, 0.5], 2.0, 0.03).unwrap();
        assert!((phase - 0.01).abs() < 1e-9, "{phase}");
        assert_eq!(densest(&[], 2.0, 0.03), None);
    }
}
