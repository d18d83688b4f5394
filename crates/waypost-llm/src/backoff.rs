//! How long to wait before a request is retried. Pure: without a clock or a random source of its own.

use std::time::Duration;

use waypost_core::Timestamp;

/// The first wait if the server does not request one; each further wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait that we choose ourselves.
const CHOSEN_WAIT_MAX: Duration = Duration::from_secs(30);
/// The longest wait that a server can request; if it requests more, the request is given up.
pub(super) const ASKED_WAIT_MAX: Duration = Duration::from_secs(120);

/// Returns the wait after this attempt (from 1). `chance`, from 0 to 255, spreads the retries of clients that were
/// rejected together.
pub(super) fn chosen_wait(attempt: u32, chance: u8) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1_u32 << attempt.saturating_sub(1).min(16)).min(CHOSEN_WAIT_MAX);
    // From half of it to all of it.
    doubled / 2 + doubled.mul_f64(f64::from(chance) / 510.0)
}

/// Returns the wait that a server requests in the headers of its response.
pub(super) fn asked_wait<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    let seconds = |number: f64| Duration::try_from_secs_f64(number).ok();
    if let Some(millis) = header("retry-after-ms").and_then(|text| text.trim().parse::<f64>().ok()) {
        return seconds(millis / 1_000.0);
    }
    // Relative to the server's own clock: ours may be wrong.
    let until = |at: Timestamp| {
        let now = http_date(header("date")?)?;
        Some(Duration::from_micros(
            u64::try_from(at.as_micros().saturating_sub(now.as_micros())).unwrap_or(0),
        ))
    };
    if let Some(text) = header("retry-after") {
        let text = text.trim();
        return text.parse::<f64>().ok().and_then(seconds).or_else(|| until(http_date(text)?));
    }
    // If the server requests no wait, an exhausted rate limit shows when it is reset.
    let has_none = |name: &str| header(name).is_some_and(|left| left.trim() == "0");
    let of_openai = ["requests", "tokens"].into_iter().filter_map(|what| {
        let reset = header(&format!("x-ratelimit-reset-{what}"))?;
        has_none(&format!("x-ratelimit-remaining-{what}")).then(|| span(reset))?
    });
    let of_anthropic =
        ["requests", "tokens", "input-tokens", "output-tokens"].into_iter().filter_map(|what| {
            let reset = header(&format!("anthropic-ratelimit-{what}-reset"))?;
            let is_out = has_none(&format!("anthropic-ratelimit-{what}-remaining"));
            is_out.then(|| until(Timestamp::parse(reset.trim()).ok()?))?
        });
    of_openai.chain(of_anthropic).max()
}

/// Parses `6m0s`, `1.5s`, `200ms`.
fn span(text: &str) -> Option<Duration> {
    let mut total = 0.0;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit() && character != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit = &rest[digits..];
        let (factor, length) = match unit.as_bytes() {
            [b'm', b's', ..] => (0.001, 2),
            [b'h', ..] => (3_600.0, 1),
            [b'm', ..] => (60.0, 1),
            [b's', ..] => (1.0, 1),
            _ => return None,
        };
        total += number * factor;
        rest = &unit[length..];
    }
    Duration::try_from_secs_f64(total).ok()
}

/// Parses `Wed, 21 Oct 2026 07:28:00 GMT`.
fn http_date(text: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.trim().split_once(", ")?;
    let mut words = rest.split(' ');
    let (day, month, year, time) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    Timestamp::parse(&format!("{year}-{month:02}-{day}T{time}Z")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_are_never_all_the_same() {
        let millis = |attempt, chance| chosen_wait(attempt, chance).as_millis();
        assert_eq!((millis(1, 0), millis(1, 255)), (250, 500));
        assert_eq!((millis(3, 0), millis(3, 255)), (1_000, 2_000));
        assert_eq!(millis(1_000, 255), 30_000);
    }

    #[test]
    fn a_server_can_say_when_it_wants_to_be_asked_again() {
        let date = ("date", "Wed, 21 Oct 2026 07:28:00 GMT");
        for (headers, millis) in [
            (vec![("retry-after", "7")], Some(7_000)),
            (vec![("retry-after", "0.25")], Some(250)),
            (vec![("retry-after-ms", "40"), ("retry-after", "9")], Some(40)),
            (vec![date, ("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], Some(30_000)),
            (vec![date, ("retry-after", "Wed, 21 Oct 2026 07:27:30 GMT")], Some(0)),
            (vec![("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], None),
            (vec![("retry-after", "soon")], None),
            (vec![("retry-after", "-3")], None),
            (
                vec![("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "1m1.5s")],
                Some(61_500),
            ),
            (vec![("x-ratelimit-remaining-tokens", "9"), ("x-ratelimit-reset-tokens", "6m0s")], None),
            (
                vec![("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "120ms")],
                Some(120),
            ),
            (
                vec![
                    date,
                    ("anthropic-ratelimit-requests-remaining", "0"),
                    ("anthropic-ratelimit-requests-reset", "2026-10-21T07:28:05Z"),
                ],
                Some(5_000),
            ),
            (vec![], None),
        ] {
            let find = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
            assert_eq!(asked_wait(find).map(|wait| wait.as_millis()), millis, "{headers:?}");
        }
    }
}
