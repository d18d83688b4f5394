//! The table of status signs: one sign, one word and one meaning at every front end. The dashboard's copy is generated from it.
//! Does not know what a task or a plan is: the core says which sign a status has.

/// What a status is shown as. The order is the order in which people look for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, strum::VariantArray)]
pub enum StatusSign {
    /// A plan that waits for approval.
    Approval,
    /// Somebody has to answer a question.
    Asking,
    /// A task for a person.
    Person,
    /// Ended without success.
    Failed,
    /// Being worked on now.
    Running,
    /// Reported as done; the check runs.
    Checking,
    /// Could start now.
    Ready,
    /// Reserved by a worker and not started yet.
    Queued,
    /// Reported as done; the check has not run yet.
    Reported,
    /// A person holds it.
    Held,
    /// Two copies disagree; a person decides.
    Disputed,
    /// Not started, because it differs from what was approved.
    Refused,
    /// Waits for other tasks.
    Blocked,
    /// An active plan without a running task.
    Idle,
    /// A plan that a person stopped for now.
    Paused,
    /// A plan that a person sent back.
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

/// What a colour means. Each front end has its own colour for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// A person must act (magenta).
    You,
    /// Failure (red).
    Failed,
    /// Running now (blue).
    Running,
    /// Waits for its check (teal).
    Checking,
    /// Could start (slate, plain text).
    Ready,
    /// Waits (grey).
    Blocked,
    /// Stopped by a person (grey).
    Stopped,
    /// Success (green).
    Done,
    /// Passed over (violet).
    Skipped,
    /// Risk (amber).
    Risk,
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
    /// All of them, in the order in which people look for them.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    const fn row(self) -> Row {
        match self {
            Self::Approval => row("approval", "!", "!", "needs approval", Role::You),
            Self::Asking => row("asking", "?", "?", "asks a question", Role::You),
            Self::Person => row("person", "@", "@", "waits for a person", Role::You),
            Self::Failed => row("failed", "✗", "x", "failed", Role::Failed),
            Self::Running => row("running", "◐", ">", "running", Role::Running),
            Self::Checking => row("checking", "◕", "%", "checking", Role::Checking),
            Self::Ready => row("ready", "○", "o", "ready", Role::Ready),
            Self::Queued => row("queued", "◔", ",", "queued", Role::Ready),
            Self::Reported => row("reported", "◑", "*", "reported done", Role::Checking),
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

    /// The name that programs use.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The sign: one column wide, another shape for each status.
    pub const fn glyph(self) -> &'static str {
        self.row().glyph
    }

    /// The sign where only ASCII can be shown.
    pub const fn ascii(self) -> &'static str {
        self.row().ascii
    }

    /// The word that stands beside the sign.
    pub const fn label(self) -> &'static str {
        self.row().word
    }

    /// What its colour means.
    pub const fn role(self) -> Role {
        self.row().role
    }
}

impl Role {
    /// The name of the role in style sheets.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The table as a module of the dashboard.
pub fn typescript() -> String {
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
    text.push_str("} as const;\n\nexport type StatusSign = keyof typeof STATUS_SIGNS;\n");
    text
}
