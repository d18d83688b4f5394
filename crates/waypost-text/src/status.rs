//! The table of status signs: one sign, one label and one meaning at every front end. The dashboard's copy is generated
//! from it. Does not know tasks or plans: the core maps a status to its sign.

/// The sign shown for a status. Variants are in the order in which people scan for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::VariantArray)]
pub enum StatusSign {
    /// A plan that waits for approval.
    Approval,
    /// A question waits for a person's answer.
    Asking,
    /// A task that a person has to do.
    Person,
    /// Ended without success.
    Failed,
    /// In progress.
    Running,
    /// Ready to start.
    Ready,
    /// Reserved by a worker, not started yet.
    Queued,
    /// Reported as done; the check has not run yet.
    Reported,
    /// Held by a person.
    Held,
    /// Two clones disagree about the task; a person decides.
    Disputed,
    /// Not started, because it differs from the approved version.
    Refused,
    /// Waiting for other tasks.
    Blocked,
    /// An active plan without a running task.
    Idle,
    /// A plan that a person paused.
    Paused,
    /// A plan that a person rejected.
    Rejected,
    /// A plan that is being written.
    Draft,
    /// Ended with success.
    Done,
    /// Passed over.
    Skipped,
    /// Stopped for good.
    Cancelled,
}

/// The meaning of a colour. Each front end picks its own colour for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// A person must act (magenta).
    You,
    /// Failure (red).
    Failed,
    /// In progress (blue).
    Running,
    /// Waiting for its check (teal).
    Checking,
    /// Ready to start (slate, plain text).
    Ready,
    /// Waiting (grey).
    Blocked,
    /// Stopped by a person (grey).
    Stopped,
    /// Success (green).
    Done,
    /// Skipped (violet).
    Skipped,
    /// Risk (amber).
    Risk,
}

/// The parts of a list of plans, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::VariantArray)]
pub enum PlanGroup {
    /// A person has to act.
    NeedsYou,
    /// Tasks run or are checked.
    Running,
    /// Started, and nothing runs.
    Waiting,
    /// Not started.
    Drafts,
    /// Over.
    Ended,
}

impl PlanGroup {
    /// All groups, in the order of a list.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Returns the heading of the group.
    pub const fn label(self) -> &'static str {
        match self {
            Self::NeedsYou => "Needs you",
            Self::Running => "Running",
            Self::Waiting => "Waiting",
            Self::Drafts => "Drafts",
            Self::Ended => "Ended",
        }
    }

    /// Returns the signs of its plans, the most urgent first.
    pub const fn signs(self) -> &'static [StatusSign] {
        match self {
            Self::NeedsYou => &[
                StatusSign::Refused,
                StatusSign::Approval,
                StatusSign::Asking,
                StatusSign::Disputed,
                StatusSign::Person,
                StatusSign::Failed,
            ],
            Self::Running => &[StatusSign::Running, StatusSign::Reported],
            Self::Waiting => &[
                StatusSign::Paused,
                StatusSign::Idle,
                StatusSign::Blocked,
                StatusSign::Ready,
                StatusSign::Queued,
                StatusSign::Held,
            ],
            Self::Drafts => &[StatusSign::Rejected, StatusSign::Draft],
            Self::Ended => &[StatusSign::Done, StatusSign::Skipped, StatusSign::Cancelled],
        }
    }
}

struct Row {
    name: &'static str,
    glyph: &'static str,
    ascii: &'static str,
    word: &'static str,
    role: Role,
}

const fn row(
    name: &'static str,
    glyph: &'static str,
    ascii: &'static str,
    word: &'static str,
    role: Role,
) -> Row {
    Row { name, glyph, ascii, word, role }
}

impl StatusSign {
    /// All signs, in the order in which people scan for them.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    const fn row(self) -> Row {
        match self {
            Self::Approval => row("approval", "!", "!", "needs approval", Role::You),
            Self::Asking => row("asking", "?", "?", "asking", Role::You),
            Self::Person => row("person", "@", "@", "your task", Role::You),
            Self::Failed => row("failed", "✗", "x", "failed", Role::Failed),
            Self::Running => row("running", "◐", ">", "running", Role::Running),
            Self::Ready => row("ready", "○", "o", "ready", Role::Ready),
            Self::Queued => row("queued", "◔", ",", "queued", Role::Ready),
            Self::Reported => row("reported", "◑", "*", "reported", Role::Checking),
            Self::Held => row("held", "▣", "h", "held", Role::Stopped),
            Self::Disputed => row("disputed", "≠", "&", "disputed", Role::You),
            Self::Refused => row("refused", "▲", "^", "start refused", Role::Risk),
            Self::Blocked => row("blocked", "◌", ".", "blocked", Role::Blocked),
            Self::Idle => row("idle", "…", "~", "idle", Role::Blocked),
            Self::Paused => row("paused", "‖", "=", "paused", Role::Stopped),
            Self::Rejected => row("rejected", "←", "<", "rejected", Role::Stopped),
            Self::Draft => row("draft", "✎", "-", "draft", Role::Blocked),
            Self::Done => row("done", "✓", "+", "done", Role::Done),
            Self::Skipped => row("skipped", "⊘", "/", "skipped", Role::Skipped),
            Self::Cancelled => row("cancelled", "■", "#", "cancelled", Role::Stopped),
        }
    }

    /// Returns the name used in machine-readable output.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the sign: one column wide, a distinct shape for each status.
    pub const fn glyph(self) -> &'static str {
        self.row().glyph
    }

    /// Returns the sign for terminals limited to ASCII.
    pub const fn ascii(self) -> &'static str {
        self.row().ascii
    }

    /// Returns the label shown next to the sign.
    pub const fn label(self) -> &'static str {
        self.row().word
    }

    /// Returns the group of a plan with this sign, and its place in the group.
    pub fn plan_group(self) -> (PlanGroup, usize) {
        let place = |group: &PlanGroup| group.signs().iter().position(|sign| *sign == self);
        let found = PlanGroup::ALL.iter().find_map(|group| Some((*group, place(group)?)));
        found.unwrap_or((PlanGroup::Ended, usize::MAX))
    }

    /// Returns the meaning of the sign's colour.
    pub const fn role(self) -> Role {
        self.row().role
    }
}

impl Role {
    /// Returns the role's name in style sheets.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Generates the tables as a TypeScript module for the dashboard.
pub fn status_typescript() -> String {
    let mut text = String::from(
        "// The signs of every status. Generated by `cargo xtask generate` from crates/waypost-text/src/status.rs.\n\n\
         export const STATUS_SIGNS = {\n",
    );
    for sign in StatusSign::ALL {
        let Row { name, glyph, ascii, word, role } = sign.row();
        let role = role.name();
        text.push_str(&format!(
            "  {name}: {{ glyph: \"{glyph}\", ascii: \"{ascii}\", word: \"{word}\", role: \"{role}\" }},\n"
        ));
    }
    text.push_str(
        "} as const;\n\nexport type StatusSign = keyof typeof STATUS_SIGNS;\n\n\
         /** The groups of a list of plans, in their order, each with the statuses that belong to it, the most urgent first. */\n\
         export const PLAN_GROUPS: { name: string; statuses: StatusSign[] }[] = [\n",
    );
    for group in PlanGroup::ALL {
        let signs: Vec<String> = group.signs().iter().map(|sign| format!("\"{}\"", sign.name())).collect();
        text.push_str(&format!("  {{ name: \"{}\", statuses: [{}] }},\n", group.label(), signs.join(", ")));
    }
    text.push_str("];\n");
    text
}
