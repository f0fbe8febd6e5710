//! Reduces the number of points in long series. A line keeps the first, last, lowest and highest point of each pixel
//! column. A line also keeps both ends of its longest gaps, so that pauses keep their position. Marks are thinned
//! evenly.

/// Number of gaps whose two ends are drawn, beginning with the longest gap (a heuristic: a reader cannot inspect more
/// gaps in one figure).
pub const LONGEST_GAPS: usize = 40;

/// Minimum number of drawn points. Fewer points would save nothing.
const FEWEST_POINTS: usize = 16;

/// Points per pixel column. A rising line needs two points, because its first point in a column is the lowest, and its
/// last point the highest. Other lines need four points.
const POINTS_PER_COLUMN: [usize; 2] = [2, 4];

/// A point of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Point {
    pub t_ns: i64,
    pub y: i64,
    pub frame: i64,
}

/// At most `keep` of the items, evenly spaced, including the first and the last item.
#[must_use]
pub fn even<T: Copy>(items: &[T], keep: usize) -> Vec<T> {
    if items.len() <= keep {
        return items.to_vec();
    }
    let step = |place: usize| place * (items.len() - 1) / keep.saturating_sub(1).max(1);
    (0..keep).filter_map(|place| items.get(step(place)).copied()).collect()
}

/// Selects the points that show the shape of the line, in order. The result has at most `keep` points (but at least
/// 16), plus both ends of the longest gaps.
///
/// If timestamps run backwards, pixel columns follow the index of the points instead of their time.
#[must_use]
pub fn line_points(points: &[Point], keep: usize) -> Vec<Point> {
    let most = keep.max(FEWEST_POINTS);
    if points.len() <= most + 2 * LONGEST_GAPS {
        return points.to_vec();
    }
    let mut places = POINTS_PER_COLUMN
        .iter()
        .map(|each| of_columns(points, most / each))
        .find(|places| places.len() <= most)
        .unwrap_or_default();
    places.extend(gap_ends(points));
    places.sort_unstable();
    places.dedup();
    places.into_iter().filter_map(|place| points.get(place).copied()).collect()
}

/// The indices of the first, last, lowest and highest point of one pixel column.
#[derive(Clone, Copy)]
struct Column {
    number: u64,
    places: [usize; 4],
    low: i64,
    high: i64,
}

/// The indices of the first, last, lowest and highest point in each of `columns` pixel columns.
fn of_columns(points: &[Point], columns: usize) -> Vec<usize> {
    let begin_ns = points.first().map_or(0, |point| point.t_ns);
    let is_sorted = points.is_sorted_by_key(|point| point.t_ns);
    let across =
        |place: usize, point: &Point| if is_sorted { point.t_ns.saturating_sub(begin_ns) } else { place as i64 };
    let end = points.last().map_or(0, |point| across(points.len() - 1, point));
    let width = (end as f64 + 1.0) / columns as f64;
    let mut places = Vec::with_capacity(4 * columns);
    let mut open: Option<Column> = None;
    for (place, point) in points.iter().enumerate() {
        let number = (across(place, point) as f64 / width) as u64;
        match &mut open {
            Some(column) if column.number == number => {
                column.places[1] = place;
                if point.y < column.low {
                    (column.places[2], column.low) = (place, point.y);
                }
                if point.y > column.high {
                    (column.places[3], column.high) = (place, point.y);
                }
            }
            _ => {
                places.extend(open.iter().flat_map(|column| column.places));
                open = Some(Column { number, places: [place; 4], low: point.y, high: point.y });
            }
        }
    }
    places.extend(open.iter().flat_map(|column| column.places));
    places.sort_unstable();
    places.dedup();
    places
}

/// The indices of the points before and after the longest gaps.
fn gap_ends(points: &[Point]) -> impl Iterator<Item = usize> {
    let step = |pair: &[Point]| match pair {
        [before, after] => after.t_ns.saturating_sub(before.t_ns),
        _ => 0,
    };
    let mut gaps: Vec<(i64, usize)> =
        points.windows(2).map(step).enumerate().map(|(place, ns)| (ns.saturating_neg(), place)).collect();
    if gaps.len() > LONGEST_GAPS {
        gaps.select_nth_unstable(LONGEST_GAPS);
        gaps.truncate(LONGEST_GAPS);
    }
    gaps.into_iter().flat_map(|(_, place)| [place, place + 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: impl IntoIterator<Item = (i64, i64)>) -> Vec<Point> {
        values.into_iter().zip(0..).map(|((t_ns, y), frame)| Point { t_ns, y, frame }).collect()
    }

    /// The indices of the drawn points.
    fn places(points: &[Point], keep: usize) -> Vec<i64> {
        line_points(points, keep).iter().map(|point| point.frame).collect()
    }

    #[test]
    fn an_even_choice_has_both_ends() {
        let items: Vec<usize> = (0..1_000_000).collect();
        let chosen = even(&items, 5_000);
        assert_eq!((chosen.len(), chosen[0], chosen[4_999]), (5_000, 0, 999_999));
        assert_eq!(even(&items[..3], 10), [0, 1, 2]);
        assert_eq!(even(&items[..3], 0), [0; 0]);
    }

    #[test]
    fn one_spike_among_many_points_is_drawn() {
        let spike = |t_ns| match t_ns {
            123_457 => 9,
            700_001 => -4,
            _ => 0,
        };
        let chosen = places(&line((0..1_000_000).map(|t_ns| (t_ns, spike(t_ns)))), 2_000);
        assert!([0, 123_457, 700_001, 999_999].iter().all(|place| chosen.contains(place)));
        assert!(chosen.len() <= 2_000 + 2 * LONGEST_GAPS);
    }

    /// In a line that rises evenly, a pause is visible only at the two ends of the gap.
    #[test]
    fn both_ends_of_the_longest_gaps_are_drawn() {
        let pauses = [77_777, 250_003, 499_998];
        let mut t_ns = 0;
        let climbing = line((0..500_000).map(|place| {
            let point = (t_ns, place);
            t_ns += if pauses.contains(&place) { 200_000 } else { 100 };
            point
        }));
        let chosen = places(&climbing, 1_000);
        assert!(pauses.iter().all(|pause| chosen.contains(pause) && chosen.contains(&(pause + 1))));
    }

    #[test]
    fn a_clock_that_steps_back_is_thinned_by_position() {
        let times = (0..50_000).chain(20_000..70_000);
        let chosen = places(&line(times.zip(0..).map(|(t_ns, place)| (t_ns, i64::from(place == 60_000)))), 500);
        assert!(chosen.contains(&60_000));
        assert!(chosen.is_sorted_by(|before, after| before < after));
    }

    #[test]
    fn a_short_line_is_drawn_whole() {
        assert_eq!(places(&line((0..90).map(|t_ns| (t_ns, 0))), 4), (0..90).collect::<Vec<_>>());
    }
}
