//! The nearest known name, for "did you mean".

/// Beyond this many candidates a suggestion is not worth the search.
const CANDIDATES_MAX: usize = 20_000;
/// Edits that a suggestion may be away, however long the name is.
const EDITS_MAX: usize = 4;

/// The candidate that is closest to `wanted`, whatever its case, if one is close at all.
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let allowed = (wanted.chars().count() / 3).clamp(1, EDITS_MAX);
    let wanted = wanted.to_lowercase();
    candidates
        .into_iter()
        .take(CANDIDATES_MAX)
        .filter(|name| name.len().abs_diff(wanted.len()) <= EDITS_MAX)
        .map(|name| (strsim::levenshtein(&wanted, &name.to_lowercase()), name))
        .filter(|&(edits, _)| edits <= allowed)
        .min()
        .map(|(_, name)| name.to_owned())
}
