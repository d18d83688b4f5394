//! The columns of boxes: each box stands right of everything that it waits for, and no column is higher than a limit.

use super::levels::levels;

/// The distance between two boxes in a column.
pub(crate) const BOX_GAP: f64 = 14.0;

/// Returns the column of each box, from 0. Arrows must not contain a cycle. A column is higher than the limit only if a single box is.
pub(crate) fn columns(heights: &[f64], arrows: &[(usize, usize)], height_max: f64) -> Vec<usize> {
    let (levels, _) = levels(heights.len(), arrows);
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); heights.len()];
    for &(from, to) in arrows {
        before[to].push(from);
    }
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by_key(|&node| (levels[node], node));
    let mut columns = vec![0; heights.len()];
    let mut filled: Vec<f64> = Vec::new();
    for node in order {
        let after = before[node].iter().map(|&on| columns[on] + 1).max().unwrap_or(0);
        // What waits for nothing stands next to the first that waits for it.
        let mut column = if before[node].is_empty() { levels[node].min(filled.len()) } else { after };
        while filled
            .get(column)
            .is_some_and(|height| *height > 0.0 && height + BOX_GAP + heights[node] > height_max)
        {
            column += 1;
        }
        if column >= filled.len() {
            filled.resize(column + 1, 0.0);
        }
        filled[column] += heights[node] + if filled[column] > 0.0 { BOX_GAP } else { 0.0 };
        columns[node] = column;
    }
    close_gaps(&mut columns);
    columns
}

/// Renumbers the columns so that none is empty.
fn close_gaps(columns: &mut [usize]) {
    let count = columns.iter().max().map_or(0, |last| last + 1);
    let mut number = vec![0; count];
    columns.iter().for_each(|&column| number[column] = 1);
    let mut next = 0;
    for place in &mut number {
        next += std::mem::replace(place, next);
    }
    columns.iter_mut().for_each(|column| *column = number[*column]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_level_takes_several_columns_and_what_waits_for_it_stands_behind() {
        let arrows: Vec<(usize, usize)> = (0..10).map(|node| (node, 10)).collect();
        let found = columns(&[40.0; 11], &arrows, 3.0 * 40.0 + 2.0 * BOX_GAP);
        assert_eq!(found, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 4]);
    }

    #[test]
    fn without_a_limit_the_columns_are_the_levels() {
        assert_eq!(columns(&[40.0; 4], &[(0, 1), (0, 2), (2, 3)], f64::INFINITY), [0, 1, 1, 2]);
    }
}
