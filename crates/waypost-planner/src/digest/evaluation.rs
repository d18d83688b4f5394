//! The exam of a digest: questions with answers, answers from the digest, grades.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::Answer;
use crate::lenient_fields::{Reading, has_one_of, json_of};
use crate::repair::{Repair, Repairs};
use crate::similarity::{one_line, same};

/// Maximum number of questions in an exam.
pub const QUESTIONS_MAX: usize = 20;
/// Maximum width of a question or an answer in columns.
const COLUMNS_MAX: usize = 500;

/// A question with its correct answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) question: String,
    pub(super) right: String,
}

/// A question with the correct answer and the given one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) question: String,
    pub(super) right: String,
    pub(super) given: String,
}

type Items = Vec<Map<String, Value>>;
type Read<T> = Result<(T, Repairs), Vec<String>>;

/// Reads the questions of an exam: at least one, at most `wanted`.
pub(super) fn questions(answer: &Answer, wanted: usize) -> Read<Vec<Question>> {
    let (list, mut reading) = items(answer, "questions", &["question"])?;
    let mut questions: Vec<Question> = Vec::new();
    for (place, item) in list.iter().enumerate() {
        let number = place + 1;
        let question = text(item, &["question"], &mut reading);
        let right = text(item, &["answer"], &mut reading);
        if question.is_empty() || right.is_empty() {
            reading.problem(format!("question {number} needs both `question` and `answer`"));
        } else if questions.iter().any(|other| same(&other.question, &question)) {
            reading.problem(format!("question {number} asks what another asks already"));
        } else {
            questions.push(Question { question, right });
        }
    }
    if list.is_empty() {
        reading.problem(format!("there are no questions; write {wanted}"));
    }
    questions.truncate(wanted.min(QUESTIONS_MAX));
    finish(questions, reading)
}

/// Reads the given answers; a missing one counts as "unknown".
pub(super) fn given(answer: &Answer, questions: &[Question]) -> Read<Vec<Given>> {
    let (list, mut reading) = items(answer, "answers", &["answer"])?;
    let by_number = numbered(&list, questions.len(), &mut reading, |item, reading| {
        Some(text(item, &["answer"], reading)).filter(|text| !text.is_empty())
    });
    let given = questions.iter().enumerate().map(|(place, one)| Given {
        question: one.question.clone(),
        right: one.right.clone(),
        given: by_number.get(&(place + 1)).cloned().unwrap_or_else(|| "unknown".to_owned()),
    });
    finish(given.collect(), reading)
}

/// Counts the answers that agree. Every question must be graded.
pub(super) fn agreed(answer: &Answer, given: &[Given]) -> Read<usize> {
    const AGREES: &[&str] = &["agrees", "agree", "correct"];
    let (list, mut reading) = items(answer, "marks", AGREES)?;
    let marks = numbered(&list, given.len(), &mut reading, |item, reading| {
        let value = reading.field(item, AGREES)?;
        reading.boolean(value)
    });
    for number in 1..=given.len() {
        if !marks.contains_key(&number) {
            reading.problem(format!("question {number} has no mark; `agrees` must be true or false"));
        }
    }
    // An unanswered question never counts as correct, whatever its grade.
    let right = |(place, one): &(usize, &Given)| {
        marks.get(&(place + 1)) == Some(&true) && !one.given.trim().eq_ignore_ascii_case("unknown")
    };
    let agreed = given.iter().enumerate().filter(right).count();
    finish(agreed, reading)
}

fn finish<T>(read: T, reading: Reading) -> Read<T> {
    if reading.problems.is_empty() { Ok((read, reading.repairs)) } else { Err(reading.problems) }
}

fn text(item: &Map<String, Value>, names: &[&str], reading: &mut Reading) -> String {
    let text = reading.field(item, names).and_then(|value| reading.text(value)).unwrap_or_default();
    one_line(&text, COLUMNS_MAX)
}

/// Reads the objects of the list in an answer.
fn items(answer: &Answer, name: &str, fields: &[&str]) -> Result<(Items, Reading), Vec<String>> {
    let is_list = |value: &Value| {
        value
            .as_array()
            .is_some_and(|list| !list.is_empty() && list.iter().all(|item| has_one_of(item, fields)))
    };
    let fits = |value: &Value| has_one_of(value, &[name]) || is_list(value);
    let (value, mut reading) = json_of(answer, &fits)?;
    let list = match &value {
        Value::Array(list) => {
            reading.repairs.note(Repair::BareList);
            Some(list)
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            other.get(name).and_then(Value::as_array)
        }
    };
    let Some(list) = list else { return Err(vec![format!("`{name}` is missing; it must be a list")]) };
    let mut objects = Vec::new();
    for (place, item) in list.iter().enumerate() {
        match item.as_object() {
            Some(object) => objects.push(object.clone()),
            None => reading.problem(format!("entry {} of `{name}` must be an object", place + 1)),
        }
    }
    Ok((objects, reading))
}

/// Values by the number of their question; the first value for each counts. An entry without a number belongs to
/// the question at its position.
fn numbered<T>(
    list: &[Map<String, Value>],
    count: usize,
    reading: &mut Reading,
    read: impl Fn(&Map<String, Value>, &mut Reading) -> Option<T>,
) -> BTreeMap<usize, T> {
    let mut by_number = BTreeMap::new();
    for (place, item) in list.iter().enumerate() {
        let said = item.get("question").or_else(|| item.get("number")).or_else(|| item.get("id"));
        let number = match said {
            Some(Value::Number(number)) => number.as_u64().and_then(|number| usize::try_from(number).ok()),
            Some(Value::String(text)) => text.trim().parse().ok().or(Some(place + 1)),
            Some(_) | None => Some(place + 1),
        };
        match number.filter(|number| (1..=count).contains(number)) {
            Some(number) => {
                if let Some(value) = read(item, reading) {
                    by_number.entry(number).or_insert(value);
                }
            }
            None => reading
                .problem(format!("entry {} names a question that there is not (1 to {count})", place + 1)),
        }
    }
    by_number
}
