use std::time::Duration;

use waypost_text::{age, ago, byte_size, count, duration};

const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;
const DAY: u64 = 86_400;

#[test]
fn a_noun_follows_its_number() {
    for (number, noun, expected) in [
        (0, "task", "0 tasks"),
        (1, "task", "1 task"),
        (2, "task", "2 tasks"),
        (1, "dependency", "1 dependency"),
        (3, "dependency", "3 dependencies"),
        (2, "day", "2 days"),
        (2, "match", "2 matches"),
        (2, "more line", "2 more lines"),
    ] {
        assert_eq!(count(number, noun), expected);
    }
}

#[test]
fn ages_use_the_largest_unit() {
    for (seconds, in_a_column, in_a_sentence) in [
        (0, "now", "now"),
        (9, "now", "now"),
        (10, "10s", "10s ago"),
        (59, "59s", "59s ago"),
        (MINUTE, "1m", "1m ago"),
        (HOUR - 1, "59m", "59m ago"),
        (HOUR, "1h", "1h ago"),
        (DAY - 1, "23h", "23h ago"),
        (DAY, "1d", "1d ago"),
        (14 * DAY - 1, "13d", "13d ago"),
        (14 * DAY, "2w", "2w ago"),
        (700 * DAY, "100w", "100w ago"),
    ] {
        assert_eq!(age(Duration::from_secs(seconds)), in_a_column);
        assert_eq!(ago(Duration::from_secs(seconds)), in_a_sentence);
    }
}

#[test]
fn durations_use_the_two_largest_units() {
    for (milliseconds, expected) in [
        (0, "0.0s"),
        (49, "0.0s"),
        (50, "0.1s"),
        (9_949, "9.9s"),
        (9_950, "10s"),
        (59_499, "59s"),
        (59_500, "1m00s"),
        (125_000, "2m05s"),
        (1_000 * (3 * HOUR + 7 * MINUTE + 1), "3h07m"),
        (1_000 * (2 * DAY + 3 * HOUR), "2d03h"),
    ] {
        assert_eq!(duration(Duration::from_millis(milliseconds)), expected, "{milliseconds} ms");
    }
}

#[test]
fn sizes_use_binary_units() {
    for (bytes, expected) in [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_024, "1.0 KiB"),
        (1_572_864, "1.5 MiB"),
        (u64::MAX, "16777216.0 TiB"),
    ] {
        assert_eq!(byte_size(bytes), expected);
    }
}
