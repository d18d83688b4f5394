//! Formats numbers for people: counts with their noun, ages, durations and sizes.

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

/// Ages below this show as `now`: a seconds count would only flicker.
const NOW_SECONDS: u64 = 10;

/// Formats a number with its noun in the right form: `1 task`, `3 tasks`, `2 dependencies`, `2 matches`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 {
        return format!("{number} {noun}");
    }
    let has_vowel = |stem: &str| stem.ends_with(['a', 'e', 'i', 'o', 'u']);
    match noun.strip_suffix('y') {
        Some(stem) if !has_vowel(stem) => format!("{number} {stem}ies"),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{number} {noun}es"),
        _ => format!("{number} {noun}s"),
    }
}

/// Formats an age in its largest unit, for a column: `now`, `12s`, `5m`, `3h`, `9d`, `7w`.
pub fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..NOW_SECONDS => "now".to_owned(),
        NOW_SECONDS..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 2 * WEEK => format!("{}d", seconds / DAY),
        _ => format!("{}w", seconds / WEEK),
    }
}

/// Formats an age for a sentence: `now`, `5m ago`.
pub fn ago(time: Duration) -> String {
    let age = age(time);
    if time.as_secs() < NOW_SECONDS { age } else { format!("{age} ago") }
}

/// Formats a duration in its two largest units: `0.3s`, `12s`, `2m05s`, `3h07m`, `2d03h`.
pub fn duration(duration: Duration) -> String {
    let tenths = (duration.as_millis() + 50) / 100;
    if tenths < 100 {
        return format!("{}.{}s", tenths / 10, tenths % 10);
    }
    let seconds = duration.saturating_add(Duration::from_millis(500)).as_secs();
    match seconds {
        0..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => format!("{}m{:02}s", seconds / MINUTE, seconds % MINUTE),
        HOUR..DAY => format!("{}h{:02}m", seconds / HOUR, seconds % HOUR / MINUTE),
        _ => format!("{}d{:02}h", seconds / DAY, seconds % DAY / HOUR),
    }
}

/// Formats a size in binary units: `512 B`, `1.5 KiB`.
pub fn byte_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{size:.1} {}", UNITS[unit]) }
}

/// Encodes bytes as lowercase hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    // Requests of signed-in people hash their secrets, so this is on a hot path.
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)]);
        text.push(DIGITS[usize::from(byte & 15)]);
    }
    text
}

/// Returns the bytes that hexadecimal digits stand for; `None` if there are more, fewer, or others.
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut bytes = [0; N];
    if !rest.is_empty() || pairs.len() != N {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}
