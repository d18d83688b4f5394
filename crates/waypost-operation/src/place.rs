//! Fractional keys, which place tasks among their siblings: between two keys there is always another one, and keys that are
//! added at an end stay short.
//!
//! A key is an integer followed by a fraction, in base 62. The first letter of the integer says how many digits it has:
//! `a0`, `a1`, … `az`, `b00`, …; capital letters stand for what comes before `a0`. Keys compare as bytes.

use std::iter::successors;

use waypost_core::limits;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

fn value(digit: u8) -> Option<usize> {
    DIGITS.iter().position(|&known| known == digit)
}

/// Returns the length of an integer by its first letter.
fn integer_length(head: u8) -> Option<usize> {
    match head {
        b'a'..=b'z' => Some(usize::from(head - b'a') + 2),
        b'A'..=b'Z' => Some(usize::from(b'Z' - head) + 2),
        _ => None,
    }
}

/// Splits a key into its integer and its fraction.
fn parts(key: &str) -> Option<(&str, &str)> {
    let length = integer_length(*key.as_bytes().first()?)?;
    (key.is_ascii() && key.len() >= length).then(|| key.split_at(length))
}

/// Whether a text is a key.
pub(super) fn is_key(key: &str) -> bool {
    let Some((integer, fraction)) = parts(key) else { return false };
    let is_smallest = integer.starts_with('A') && integer.bytes().skip(1).all(|digit| digit == b'0');
    key.len() <= limits::PLACE_BYTES_MAX
        && key.bytes().all(|digit| value(digit).is_some())
        && !fraction.ends_with('0')
        && !(is_smallest && fraction.is_empty())
}

/// Returns the next integer; `None` after the last one.
fn increment(integer: &str) -> Option<String> {
    let mut digits: Vec<u8> = integer.bytes().collect();
    for digit in digits.iter_mut().skip(1).rev() {
        match DIGITS.get(value(*digit)? + 1) {
            Some(&next) => {
                *digit = next;
                return String::from_utf8(digits).ok();
            }
            None => *digit = b'0',
        }
    }
    let head = match digits[0] {
        b'z' => return None,
        b'Z' => b'a',
        head => head + 1,
    };
    Some(with_length(head, '0'))
}

/// Returns the integer before; `None` before the first one.
fn decrement(integer: &str) -> Option<String> {
    let mut digits: Vec<u8> = integer.bytes().collect();
    for digit in digits.iter_mut().skip(1).rev() {
        match value(*digit)?.checked_sub(1) {
            Some(before) => {
                *digit = DIGITS[before];
                return String::from_utf8(digits).ok();
            }
            None => *digit = b'z',
        }
    }
    let head = match digits[0] {
        b'A' => return None,
        b'a' => b'Z',
        head => head - 1,
    };
    Some(with_length(head, 'z'))
}

fn with_length(head: u8, digit: char) -> String {
    let length = integer_length(head).unwrap_or(2);
    std::iter::once(char::from(head)).chain(std::iter::repeat_n(digit, length - 1)).collect()
}

/// Returns a fraction between two others; without `b`, after `a`.
fn midpoint(a: &str, b: Option<&str>) -> String {
    let (mut a, mut b) = (a.as_bytes(), b.map(str::as_bytes));
    let mut mid = Vec::new();
    loop {
        if let Some(end) = b {
            let padded = a.iter().copied().chain(std::iter::repeat(b'0'));
            let same = end.iter().zip(padded).take_while(|(b, a)| **b == *a).count();
            mid.extend_from_slice(&end[..same]);
            (a, b) = (a.get(same..).unwrap_or(&[]), Some(&end[same..]));
        }
        let low = a.first().and_then(|&digit| value(digit)).unwrap_or(0);
        let high = b.map_or(DIGITS.len(), |b| b.first().and_then(|&digit| value(digit)).unwrap_or(0));
        if high > low + 1 {
            mid.push(DIGITS[(low + high).div_ceil(2)]);
            break;
        }
        match b {
            Some([first, _, ..]) => {
                mid.push(*first);
                break;
            }
            Some(_) | None => {
                mid.push(DIGITS[low]);
                (a, b) = (a.get(1..).unwrap_or(&[]), None);
            }
        }
    }
    mid.into_iter().map(char::from).collect()
}

/// Returns a key between two keys, before the first or after the last. `None` if there is no room: the keys are not in
/// order, or the new one would be too long.
pub(crate) fn between(a: Option<&str>, b: Option<&str>) -> Option<String> {
    let key = match (a, b) {
        (None, None) => "a0".to_owned(),
        (Some(a), Some(b)) if a >= b => return None,
        (None, Some(b)) => {
            let (integer, fraction) = parts(b)?;
            match decrement(integer) {
                _ if !fraction.is_empty() && integer.len() < b.len() && is_key(integer) => integer.to_owned(),
                Some(before) if is_key(&before) => before,
                Some(_) | None => format!("{integer}{}", midpoint("", Some(fraction))),
            }
        }
        (Some(a), None) => {
            let (integer, fraction) = parts(a)?;
            increment(integer).unwrap_or_else(|| format!("{integer}{}", midpoint(fraction, None)))
        }
        (Some(a), Some(b)) => {
            let ((integer, fraction), (other, end)) = (parts(a)?, parts(b)?);
            match increment(integer) {
                _ if integer == other => format!("{integer}{}", midpoint(fraction, Some(end))),
                Some(next) if next.as_str() < b => next,
                Some(_) | None => format!("{integer}{}", midpoint(fraction, None)),
            }
        }
    };
    is_key(&key).then_some(key)
}

/// Returns `count` keys in order between two keys.
pub(crate) fn several_between(a: Option<&str>, b: Option<&str>, count: usize) -> Option<Vec<String>> {
    if count == 0 {
        return Some(Vec::new());
    }
    let Some(end) = b else {
        let first = between(a, None)?;
        let keys: Vec<String> = successors(Some(first), |key| between(Some(key), None)).take(count).collect();
        return (keys.len() == count).then_some(keys);
    };
    // Halving keeps the keys short; the depth is the logarithm of the count.
    let middle = between(a, Some(end))?;
    let mut keys = several_between(a, Some(&middle), (count - 1) / 2)?;
    let rest = several_between(Some(&middle), Some(end), count / 2)?;
    keys.push(middle);
    keys.extend(rest);
    Some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_at_an_end_stay_short() {
        let keys = several_between(None, None, 100_000).unwrap();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]) && keys.iter().all(|key| is_key(key)));
        assert_eq!((keys[0].as_str(), keys[61].as_str(), keys[62].as_str()), ("a0", "az", "b00"));
        assert!(keys.iter().all(|key| key.len() <= 4));
        let mut first = "a0".to_owned();
        for _ in 0..10_000 {
            let before = between(None, Some(&first)).unwrap();
            assert!(before < first && before.len() <= 4, "{before} {first}");
            first = before;
        }
    }

    #[test]
    fn between_two_keys_there_is_always_another_one() {
        let mut random = 7u64;
        let mut keys = several_between(None, None, 4).unwrap();
        for _ in 0..3_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let place = (random >> 33) as usize % (keys.len() + 1);
            let (a, b) = (place.checked_sub(1).map(|before| keys[before].clone()), keys.get(place).cloned());
            let key = between(a.as_deref(), b.as_deref()).unwrap();
            assert!(a.is_none_or(|a| a < key) && b.is_none_or(|b| key < b) && is_key(&key), "{key}");
            keys.insert(place, key);
        }
        let more = several_between(Some(&keys[5]), Some(&keys[6]), 1_000).unwrap();
        assert!(more.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(keys[5] < more[0] && more[999] < keys[6]);
    }

    #[test]
    fn what_is_no_key_has_no_place() {
        for bad in [
            "",
            "a",
            "a00",
            "b0",
            "0",
            "a0é",
            "a0 ",
            &format!("A{}", "0".repeat(26)),
            &format!("a0{}1", "0".repeat(600)),
        ] {
            assert!(!is_key(bad), "{bad:?}");
        }
        assert_eq!(between(Some("a1"), Some("a1")), None);
        assert_eq!(between(Some("a2"), Some("a1")), None);
    }
}
