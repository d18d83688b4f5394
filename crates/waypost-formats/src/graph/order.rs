//! The order of the elements of each column, with few crossings, and their heights, with few bends.
//!
//! An element is a box, the point where an edge passes a column, or the point where it crosses the border of the picture.

use super::columns::BOX_GAP;

/// Passes that improve the order of the elements.
const ORDER_SWEEPS: usize = 12;
/// Elements of a column up to which neighbours are exchanged one by one.
const EXCHANGED_MAX: usize = 120;
/// Passes that move the elements towards their neighbours.
const PLACE_SWEEPS: usize = 10;
/// How much higher than its highest column a row may become for the sake of straight edges.
const STAIRS_MAX: f64 = 1.2;
/// The distance of an edge from a box or another edge.
const LINE_GAP: f64 = 3.0;
/// Passing edges weigh more than boxes, so that they run straight.
const LINE_WEIGHT: f64 = 6.0;

#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) column: usize,
    pub(crate) height: f64,
    pub(crate) is_box: bool,
    /// Where it should be among the others of its column before the order is improved.
    pub(crate) hint: f64,
}

/// An edge between neighbouring columns. Heights count from the top of the elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) left: usize,
    pub(crate) left_at: f64,
    pub(crate) right: usize,
    pub(crate) right_at: f64,
}

pub(crate) struct Order<'a> {
    elements: &'a [Element],
    links: &'a [Link],
    /// The links of each element, to the left and to the right.
    left_of: Vec<Vec<usize>>,
    right_of: Vec<Vec<usize>>,
    columns: Vec<Vec<usize>>,
    positions: Vec<usize>,
}

impl<'a> Order<'a> {
    pub(crate) fn of(elements: &'a [Element], links: &'a [Link], count: usize) -> Self {
        let mut columns: Vec<Vec<usize>> = vec![Vec::new(); count];
        let mut order: Vec<usize> = (0..elements.len()).collect();
        order.sort_by(|&a, &b| elements[a].hint.total_cmp(&elements[b].hint).then(a.cmp(&b)));
        for element in order {
            columns[elements[element].column].push(element);
        }
        let mut left_of = vec![Vec::new(); elements.len()];
        let mut right_of = vec![Vec::new(); elements.len()];
        for (number, link) in links.iter().enumerate() {
            right_of[link.left].push(number);
            left_of[link.right].push(number);
        }
        let mut made =
            Self { elements, links, left_of, right_of, columns, positions: vec![0; elements.len()] };
        made.number();
        made.improve();
        made
    }

    fn number(&mut self) {
        for column in &self.columns {
            column.iter().enumerate().for_each(|(at, &element)| self.positions[element] = at);
        }
    }

    /// The ends of an element's links at one side: the position of the other element, and the height there.
    fn ends(&self, element: usize, to_left: bool) -> Vec<f64> {
        let links = if to_left { &self.left_of[element] } else { &self.right_of[element] };
        let end = |&number: &usize| {
            let link = &self.links[number];
            let (other, at) = if to_left { (link.left, link.left_at) } else { (link.right, link.right_at) };
            self.positions[other] as f64 + at / (self.elements[other].height + 1.0)
        };
        links.iter().map(end).collect()
    }

    /// Sorts each column by the mean position of the neighbours, alternately from both sides, and keeps the best order.
    fn improve(&mut self) {
        let mut best = (self.crossings(), self.columns.clone());
        for sweep in 0..ORDER_SWEEPS {
            if best.0 == 0 {
                break;
            }
            let to_left = sweep % 2 == 0;
            let count = self.columns.len();
            for step in 1..count {
                let at = if to_left { step } else { count - 1 - step };
                let mut column = std::mem::take(&mut self.columns[at]);
                let key = |element: usize| {
                    let ends = self.ends(element, to_left);
                    match ends.len() {
                        0 => self.positions[element] as f64,
                        count => ends.iter().sum::<f64>() / count as f64,
                    }
                };
                let keys: Vec<(f64, usize)> = column.iter().map(|&element| (key(element), element)).collect();
                let mut keys = keys;
                keys.sort_by(|a, b| a.0.total_cmp(&b.0));
                column.clear();
                column.extend(keys.iter().map(|(_, element)| *element));
                column.iter().enumerate().for_each(|(place, &element)| self.positions[element] = place);
                self.columns[at] = column;
                self.exchange(at);
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.columns.clone());
            }
        }
        self.columns = best.1;
        self.number();
    }

    /// Exchanges neighbours in a column while that saves crossings.
    fn exchange(&mut self, at: usize) {
        let count = self.columns[at].len();
        if !(2..=EXCHANGED_MAX).contains(&count) {
            return;
        }
        let sorted = |element: usize, to_left: bool| {
            let mut ends = self.ends(element, to_left);
            ends.sort_by(f64::total_cmp);
            ends
        };
        let mut column: Vec<(usize, Vec<f64>, Vec<f64>)> = self.columns[at]
            .iter()
            .map(|&element| (element, sorted(element, true), sorted(element, false)))
            .collect();
        for _ in 0..count.min(8) {
            let mut is_better = false;
            for place in 1..count {
                let (upper, lower) = (&column[place - 1], &column[place]);
                let now = inversions(&upper.1, &lower.1) + inversions(&upper.2, &lower.2);
                let then = inversions(&lower.1, &upper.1) + inversions(&lower.2, &upper.2);
                if then < now {
                    column.swap(place - 1, place);
                    is_better = true;
                }
            }
            if !is_better {
                break;
            }
        }
        for (place, (element, _, _)) in column.iter().enumerate() {
            self.columns[at][place] = *element;
            self.positions[*element] = place;
        }
    }

    /// Counts the pairs of links that cross, column by column, with a binary indexed tree.
    fn crossings(&self) -> u64 {
        let mut total = 0;
        for column in &self.columns {
            let mut ends: Vec<(f64, f64)> = Vec::new();
            for &element in column {
                for &number in &self.right_of[element] {
                    let link = &self.links[number];
                    let height = |of: usize, at: f64| {
                        self.positions[of] as f64 + at / (self.elements[of].height + 1.0)
                    };
                    ends.push((height(link.left, link.left_at), height(link.right, link.right_at)));
                }
            }
            ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            let mut heights: Vec<f64> = ends.iter().map(|end| end.1).collect();
            heights.sort_by(f64::total_cmp);
            heights.dedup();
            let mut sums = vec![0u64; heights.len() + 1];
            let mut at = 0;
            let mut seen = 0;
            while at < ends.len() {
                // Links that leave at one height do not cross each other.
                let until = at + ends[at..].partition_point(|end| end.0 <= ends[at].0);
                for end in &ends[at..until] {
                    let mut place = heights.partition_point(|height| *height <= end.1);
                    let mut before = 0;
                    while place > 0 {
                        before += sums[place];
                        place &= place - 1;
                    }
                    total += seen - before;
                }
                for end in &ends[at..until] {
                    let mut place = heights.partition_point(|height| *height <= end.1);
                    while place < sums.len() {
                        sums[place] += 1;
                        place += place & place.wrapping_neg();
                    }
                    seen += 1;
                }
                at = until;
            }
        }
        total
    }

    /// Returns the top of each element. Neighbours of a column keep their distance.
    pub(crate) fn tops(&self) -> Vec<f64> {
        let mut tops = vec![0.0; self.elements.len()];
        for column in &self.columns {
            let offsets = self.offsets(column);
            let middle = match column.last() {
                Some(&last) => (offsets[column.len() - 1] + self.elements[last].height) / 2.0,
                None => 0.0,
            };
            column.iter().zip(&offsets).for_each(|(&element, offset)| tops[element] = offset - middle);
        }
        let count = self.columns.len();
        for sweep in 0..PLACE_SWEEPS {
            let to_left = sweep % 2 == 0;
            for step in 0..count {
                let at = if to_left { step } else { count - 1 - step };
                self.settle(&self.columns[at], to_left, sweep + 2 >= PLACE_SWEEPS, &mut tops);
            }
        }
        self.level(&mut tops);
        let top = tops.iter().copied().fold(f64::INFINITY, f64::min);
        tops.iter_mut().for_each(|y| *y = (*y - top).round());
        tops
    }

    /// Moves columns that stand far above or below the others towards them: the columns of one wide level would form stairs.
    fn level(&self, tops: &mut [f64]) {
        let span = |column: &Vec<usize>, tops: &[f64]| {
            let (first, last) = (*column.first()?, *column.last()?);
            Some((tops[first], tops[last] + self.elements[last].height))
        };
        let spans: Vec<(f64, f64)> = self.columns.iter().filter_map(|column| span(column, tops)).collect();
        let Some(highest) = spans.iter().map(|(top, bottom)| bottom - top).reduce(f64::max) else { return };
        let mut middles: Vec<f64> = spans.iter().map(|(top, bottom)| f64::midpoint(*top, *bottom)).collect();
        middles.sort_by(f64::total_cmp);
        let middle = middles[middles.len() / 2];
        let (least, most) = (middle - highest * STAIRS_MAX / 2.0, middle + highest * STAIRS_MAX / 2.0);
        for column in &self.columns {
            let Some((top, bottom)) = span(column, tops) else { continue };
            let shift = (least - top).max(0.0) + (most - bottom).min(0.0);
            column.iter().for_each(|&element| tops[element] += shift);
        }
    }

    /// The minimum distance of each element of a column from the top of the first.
    fn offsets(&self, column: &[usize]) -> Vec<f64> {
        let mut offsets = Vec::with_capacity(column.len());
        let mut at = 0.0;
        let mut previous: Option<usize> = None;
        for &element in column {
            if let Some(previous) = previous {
                let (upper, lower) = (&self.elements[previous], &self.elements[element]);
                at += upper.height + if upper.is_box && lower.is_box { BOX_GAP } else { LINE_GAP };
            }
            offsets.push(at);
            previous = Some(element);
        }
        offsets
    }

    /// Moves the elements of a column as close as possible to where their links are straight: neighbours that would pass each other
    /// become a block, which takes the median of what its elements want.
    fn settle(&self, column: &[usize], to_left: bool, both: bool, tops: &mut [f64]) {
        struct Block {
            /// What the elements want for the first, with their weights, sorted.
            wishes: Vec<(f64, f64)>,
            at: f64,
            count: usize,
        }
        let offsets = self.offsets(column);
        let mut blocks: Vec<Block> = Vec::new();
        for (&element, offset) in column.iter().zip(&offsets) {
            let own = &self.elements[element];
            let weight = if own.is_box { 1.0 } else { LINE_WEIGHT };
            let wish = match (self.wish(element, to_left, tops), self.wish(element, !to_left, tops)) {
                (Some(one), _) => one,
                (None, Some(other)) if both => other,
                (None, _) => tops[element],
            };
            let wish = wish - offset;
            blocks.push(Block { wishes: vec![(wish, weight)], at: wish, count: 1 });
            while let [.., before, last] = blocks.as_mut_slice()
                && before.at > last.at
            {
                before.wishes.append(&mut last.wishes);
                before.wishes.sort_by(|a, b| a.0.total_cmp(&b.0));
                before.at = weighted_median(&before.wishes);
                before.count += last.count;
                blocks.pop();
            }
        }
        let mut place = 0;
        for block in blocks {
            for _ in 0..block.count {
                tops[column[place]] = block.at + offsets[place];
                place += 1;
            }
        }
    }

    /// Where the top of an element would have to be so that its middle link is straight.
    fn wish(&self, element: usize, to_left: bool, tops: &[f64]) -> Option<f64> {
        let links = if to_left { &self.left_of[element] } else { &self.right_of[element] };
        let mut wishes: Vec<f64> = links
            .iter()
            .map(|&number| {
                let link = &self.links[number];
                match to_left {
                    true => tops[link.left] + link.left_at - link.right_at,
                    false => tops[link.right] + link.right_at - link.left_at,
                }
            })
            .collect();
        wishes.sort_by(f64::total_cmp);
        let middle = wishes.len() / 2;
        match wishes.len() {
            0 => None,
            // The middle between two: a fork stands between its ends.
            count if count % 2 == 0 => Some(f64::midpoint(wishes[middle - 1], wishes[middle])),
            _ => Some(wishes[middle]),
        }
    }
}

fn weighted_median(wishes: &[(f64, f64)]) -> f64 {
    let half = wishes.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    for (wish, weight) in wishes {
        sum += weight;
        if sum >= half {
            return *wish;
        }
    }
    0.0
}

/// Counts the pairs of which the end of the upper element is below that of the lower one. Both lists are sorted.
fn inversions(upper: &[f64], lower: &[f64]) -> usize {
    let mut at = 0;
    let mut count = 0;
    for end in upper {
        while at < lower.len() && lower[at] < *end {
            at += 1;
        }
        count += at;
    }
    count
}
