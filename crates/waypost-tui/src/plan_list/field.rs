//! What the list of plans can be ordered by, and which fields of a plan are set from it. Knows no list.

use waypost_store::Sort;

use crate::dialog::menu::MenuOption;

/// The orders of the list, as they are offered.
pub(super) const SORTS: [(Sort, fn() -> MenuOption); 6] = [
    (Sort::Attention, || MenuOption::new("what needs you first", "then what runs")),
    (Sort::Updated, || MenuOption::new("last changed first", "")),
    (Sort::Created, || MenuOption::new("newest first", "")),
    (Sort::Urgency, || MenuOption::new("most urgent first", "by the priority of what could start now")),
    (Sort::Title, || MenuOption::new("by title", "")),
    (Sort::Id, || MenuOption::new("by name", "")),
];

/// A field of a plan that is set from the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlanField {
    Status,
    Note,
    Queue,
    Owner,
}
