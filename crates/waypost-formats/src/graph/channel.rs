//! The space between two columns of boxes: gives every net of edges a vertical track, so that few nets cross and none overlap.
//!
//! A net joins some heights at its left border with some at its right border. All edges of a net share its track.

/// Nets up to which the order of the tracks is improved net by net. More are ordered by a rule alone.
const ORDERED_NETS_MAX: usize = 400;
/// Passes that move each net to its best position among the others.
const PASSES: usize = 2;
/// What an overlap of two edges costs, in crossings.
const OVERLAP_COST: usize = 200;
/// Minimum distance between the vertical parts of two nets on the same track.
const TRACK_END_GAP: f64 = 6.0;
/// Heights that differ by less are the same.
pub(crate) const SAME: f64 = 0.01;

/// The heights at which edges enter and leave the space.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Net {
    lefts: Vec<f64>,
    rights: Vec<f64>,
}

impl Net {
    pub(crate) fn new(mut lefts: Vec<f64>, mut rights: Vec<f64>) -> Self {
        lefts.sort_by(f64::total_cmp);
        rights.sort_by(f64::total_cmp);
        Self { lefts, rights }
    }

    fn span(&self) -> (f64, f64) {
        let all = || self.lefts.iter().chain(&self.rights).copied();
        (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max))
    }

    /// Whether all ends are at one height, so that the net is a straight line and needs no track.
    fn is_straight(&self) -> bool {
        let (top, bottom) = self.span();
        bottom - top < SAME
    }

    /// A height by which nets are ordered at first: nets that run down stand in reverse order of their beginnings.
    fn rank(&self) -> f64 {
        let mean = |ends: &[f64]| ends.iter().sum::<f64>() / ends.len().max(1) as f64;
        let (from, to) = (mean(&self.lefts), mean(&self.rights));
        if to > from { -from } else { to }
    }
}

/// Returns how many of the sorted heights are between two others.
fn between(heights: &[f64], (top, bottom): (f64, f64)) -> usize {
    let first = heights.partition_point(|&height| height < top + SAME);
    let last = heights.partition_point(|&height| height <= bottom - SAME);
    last.saturating_sub(first)
}

/// Returns how many of the sorted heights occur in both lists.
fn shared(some: &[f64], others: &[f64]) -> usize {
    let near = |&height: &f64| {
        let at = others.partition_point(|&other| other < height - SAME);
        others.get(at).is_some_and(|other| (other - height).abs() < SAME)
    };
    some.iter().filter(|height| near(height)).count()
}

/// Returns what it costs to draw the track of one net left of that of another: their crossings, and overlaps.
fn cost(left: &Net, right: &Net) -> usize {
    between(&right.lefts, left.span())
        + between(&left.rights, right.span())
        + OVERLAP_COST * shared(&right.lefts, &left.rights)
}

/// Returns the track of each net, counted from the left, and the number of tracks. A straight net has none.
pub(crate) fn tracks(nets: &[Net]) -> (Vec<Option<usize>>, usize) {
    let mut initial: Vec<usize> = (0..nets.len()).filter(|&net| !nets[net].is_straight()).collect();
    initial.sort_by(|&a, &b| nets[a].rank().total_cmp(&nets[b].rank()).then(a.cmp(&b)));
    let order = if initial.len() > ORDERED_NETS_MAX { initial } else { improved(nets, initial) };
    let mut tracks = vec![None; nets.len()];
    let mut count = 0;
    for (at, &net) in order.iter().enumerate() {
        let (top, bottom) = nets[net].span();
        let mut track = 0;
        for &before in &order[..at] {
            let (other_top, other_bottom) = nets[before].span();
            let is_near = other_top < bottom + TRACK_END_GAP && top < other_bottom + TRACK_END_GAP;
            if is_near && let Some(taken) = tracks[before] {
                track = track.max(taken + 1);
            }
        }
        tracks[net] = Some(track);
        count = count.max(track + 1);
    }
    (tracks, count)
}

/// Inserts each net where it crosses the others least, then moves each once more.
fn improved(nets: &[Net], initial: Vec<usize>) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::with_capacity(initial.len());
    for &net in &initial {
        insert(nets, &mut order, net);
    }
    for _ in 0..PASSES {
        for &net in &initial {
            order.retain(|&other| other != net);
            insert(nets, &mut order, net);
        }
    }
    order
}

fn insert(nets: &[Net], order: &mut Vec<usize>, net: usize) {
    let mut here: usize = order.iter().map(|&other| cost(&nets[net], &nets[other])).sum();
    let (mut best, mut at) = (here, 0);
    for (step, &other) in order.iter().enumerate() {
        here = here + cost(&nets[other], &nets[net]) - cost(&nets[net], &nets[other]);
        if here <= best {
            (best, at) = (here, step + 1);
        }
    }
    order.insert(at, net);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(left: f64, right: f64) -> Net {
        Net::new(vec![left], vec![right])
    }

    #[test]
    fn parallel_nets_that_run_down_do_not_cross() {
        let (found, count) = tracks(&[net(10.0, 100.0), net(50.0, 150.0)]);
        assert_eq!((found, count), (vec![Some(1), Some(0)], 2));
    }

    #[test]
    fn a_straight_net_needs_no_track_and_distant_nets_share_one() {
        let (found, count) = tracks(&[net(10.0, 10.0), net(20.0, 40.0), net(60.0, 80.0)]);
        assert_eq!((found, count), (vec![None, Some(0), Some(0)], 1));
    }

    #[test]
    fn nets_whose_ends_meet_do_not_overlap() {
        // The first enters where the second leaves: its track must be the left one.
        let (found, _) = tracks(&[net(50.0, 90.0), net(20.0, 50.0)]);
        assert!(found[0] < found[1], "{found:?}");
    }
}
