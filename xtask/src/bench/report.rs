//! A table that compares figures with their budgets.

#[derive(Default)]
pub(super) struct Report {
    lines: Vec<(String, String, String, bool)>,
}

impl Report {
    /// Adds a figure that must not exceed its budget.
    pub(super) fn at_most(&mut self, what: &str, found: f64, budget: f64, unit: &str) {
        self.line(what, format!("{found:.2} {unit}"), format!("≤ {budget} {unit}"), found <= budget);
    }

    /// Adds a figure that must not fall below its budget.
    #[cfg(feature = "bench")]
    pub(super) fn at_least(&mut self, what: &str, found: f64, budget: f64, unit: &str) {
        self.line(what, format!("{found:.2} {unit}"), format!("≥ {budget} {unit}"), found >= budget);
    }

    /// Adds a figure without a budget.
    pub(super) fn note(&mut self, what: &str, found: String) {
        self.line(what, found, String::new(), true);
    }

    fn line(&mut self, what: &str, found: String, budget: String, fine: bool) {
        let verdict = if fine { "" } else { "OVER BUDGET" };
        println!("{what:<66} {found:>16}  {budget:<16} {verdict}");
        self.lines.push((what.to_owned(), found, budget, fine));
    }

    pub(super) fn print(&self) {
        let over = self.lines.iter().filter(|line| !line.3).count();
        println!("\n{} figures, {over} over budget", self.lines.len());
    }
}
