//! The price of tokens.

use serde::{Deserialize, Serialize};

/// The price of a million tokens, in millionths of a unit of the price list's currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    pub micros_in: u64,
    pub micros_out: u64,
}

impl Price {
    /// Returns the cost of these tokens in millionths, rounded up.
    pub fn cost(&self, tokens_in: u64, tokens_out: u64) -> u64 {
        let product = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let micros = product(tokens_in, self.micros_in).saturating_add(product(tokens_out, self.micros_out));
        u64::try_from(micros.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// Returns the higher price in each direction: an upper bound when either of two models may answer.
    pub fn dearer(self, other: Self) -> Self {
        Self {
            micros_in: self.micros_in.max(other.micros_in),
            micros_out: self.micros_out.max(other.micros_out),
        }
    }
}
