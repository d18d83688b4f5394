//! Colours and weights of text on a terminal. Prints nothing.

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// As everything else.
    Plain,
    /// A heading.
    Bold,
    /// Of less weight.
    Dim,
    /// It went well.
    Green,
    /// It went wrong.
    Red,
    /// Somebody should look.
    Yellow,
    /// A person must act.
    Magenta,
    /// It goes on.
    Cyan,
}

impl Look {
    /// All sequences by which something is painted.
    pub(crate) const SEQUENCES: [&str; 8] = [
        "\u{1b}[0m",
        "\u{1b}[1m",
        "\u{1b}[2m",
        "\u{1b}[32m",
        "\u{1b}[31m",
        "\u{1b}[33m",
        "\u{1b}[35m",
        "\u{1b}[36m",
    ];

    /// The number of its sequence.
    pub(crate) fn code(self) -> &'static str {
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
