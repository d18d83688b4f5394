//! Colours and weights of text on a terminal. Prints nothing.

/// The look of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Normal text.
    Plain,
    /// A heading.
    Bold,
    /// Secondary text.
    Dim,
    /// Success.
    Green,
    /// Failure.
    Red,
    /// Needs attention.
    Yellow,
    /// A person must act.
    Magenta,
    /// In progress.
    Cyan,
}

impl Look {
    /// All escape sequences that looks use.
    pub const SEQUENCES: [&str; 8] = [
        "\u{1b}[0m",
        "\u{1b}[1m",
        "\u{1b}[2m",
        "\u{1b}[32m",
        "\u{1b}[31m",
        "\u{1b}[33m",
        "\u{1b}[35m",
        "\u{1b}[36m",
    ];

    /// The number in its escape sequence.
    pub fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Green => "32",
            Self::Red => "31",
            Self::Yellow => "33",
            Self::Magenta => "35",
            Self::Cyan => "36",
        }
    }
}
