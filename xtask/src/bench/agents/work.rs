//! The work given to all servers: a plan of 50 tasks, each after up to two others, and the changes to it.

/// One task of the plan.
pub(super) struct Piece {
    pub(super) title: String,
    pub(super) description: String,
    /// The positions of the tasks that it depends on.
    pub(super) after: Vec<usize>,
}

pub(super) const PIECES: usize = 50;
/// The positions of the tasks whose title is changed.
pub(super) const RETITLED: [usize; 5] = [10, 17, 24, 33, 41];
/// The positions of the tasks whose description is changed, in a file if the server supports that.
pub(super) const REWRITTEN: [usize; 2] = [20, 45];
/// The prefix of changed titles.
pub(super) const RETITLE: &str = "Later: ";
/// The text of changed descriptions.
pub(super) const REWRITE: &str = "Ask the security team before this is merged.";

const PARTS: [&str; 10] = [
    "accounts",
    "sessions",
    "tokens",
    "billing",
    "invoices",
    "search",
    "exports",
    "webhooks",
    "audit log",
    "admin pages",
];
const STEPS: [(&str, &str); 5] = [
    ("Design the schema of", "Tables, keys and what is migrated from the old system."),
    ("Write the service for", "Handlers with validation, errors and limits."),
    ("Test", "Unit tests and one end-to-end test against a real database."),
    ("Document", "Reference page, two examples, a note on limits."),
    ("Roll out", "Behind a flag, ten per cent first, with a way back."),
];

/// Returns the plan.
pub(super) fn pieces() -> Vec<Piece> {
    let steps = STEPS.len();
    let piece = |place: usize| {
        let (part, step) = (place / steps, place % steps);
        let (verb, description) = STEPS[step];
        let within = (step > 0).then(|| place - 1);
        let across = (part > 0 && step == 0).then(|| place - steps);
        let earlier = (part > 0 && step == 4).then(|| place - steps);
        Piece {
            title: format!("{verb} {}", PARTS[part]),
            description: description.to_owned(),
            after: [within, across, earlier].into_iter().flatten().collect(),
        }
    };
    (0..PIECES).map(piece).collect()
}
