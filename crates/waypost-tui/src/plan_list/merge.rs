//! Merges the sorted lists of several stores. Knows no screen.

use std::cmp::{Ordering, Reverse};

use waypost_store::{PlanSummary, Sort};

use crate::plan::ListedPlan;

/// The same order as in the stores.
fn compare(a: &PlanSummary, b: &PlanSummary, sort: Sort) -> Ordering {
    let by_value = match sort {
        Sort::Updated => Reverse(a.updated_at).cmp(&Reverse(b.updated_at)),
        Sort::Created => Reverse(a.created_at).cmp(&Reverse(b.created_at)),
        Sort::Title => a.title.cmp(&b.title),
        Sort::Id => Ordering::Equal,
        Sort::Urgency => {
            let key = |head: &PlanSummary| (Reverse(head.urgency), head.created_micros());
            key(a).cmp(&key(b))
        }
        Sort::Attention => Reverse(a.attention()).cmp(&Reverse(b.attention())),
    };
    by_value.then_with(|| a.id.cmp(&b.id))
}

/// Merges the lists into one of (store, index into its list). Where a store has more plans than are loaded, the result ends
/// after its last loaded plan, so that a later page never has to be inserted in between.
pub(super) fn merge<'a>(
    sides: impl Iterator<Item = (&'a [ListedPlan], bool)>,
    sort: Sort,
) -> Vec<(usize, usize)> {
    let sides: Vec<(&[ListedPlan], bool)> = sides.collect();
    let mut next = vec![0; sides.len()];
    let mut merged = Vec::new();
    loop {
        let mut first: Option<(usize, &ListedPlan)> = None;
        for (store, (heads, has_more)) in sides.iter().enumerate() {
            match heads.get(next[store]) {
                Some(head)
                    if first.is_none_or(|(_, other)| {
                        compare(&head.summary, &other.summary, sort) == Ordering::Less
                    }) =>
                {
                    first = Some((store, head));
                }
                Some(_) => {}
                None if *has_more => return merged,
                None => {}
            }
        }
        let Some((store, _)) = first else { return merged };
        merged.push((store, next[store]));
        next[store] += 1;
    }
}
