use waypost_llm::token_estimate::estimate_ask;
use waypost_planner::budget::ANSWER_TOKENS_MIN;
use waypost_planner::{
    Bound, Broken, Budget, Generate, Limits, ModelRequest, PlanBrief, Price, PromptPolicy, Spent,
};

fn ask() -> ModelRequest {
    Generate::new(PromptPolicy::default(), PlanBrief::new("Build it"), "generate")
        .unwrap()
        .next()
        .unwrap()
        .clone()
}

const PRICE: Price = Price { micros_in: 3_000_000, micros_out: 15_000_000 };

#[test]
fn cost_is_counted_in_whole_millionths_and_rounded_up() {
    assert_eq!(PRICE.cost(1_000_000, 0), 3_000_000);
    assert_eq!(PRICE.cost(1_000, 100), 3_000 + 1_500);
    assert_eq!(Price { micros_in: 1, micros_out: 0 }.cost(1, 0), 1);
    assert_eq!(Price::default().cost(u64::MAX, u64::MAX), 0);
    assert_eq!(Price { micros_in: u64::MAX, micros_out: u64::MAX }.cost(u64::MAX, u64::MAX), u64::MAX);
}

#[track_caller]
fn broken(limits: Limits, spent: Spent) -> Broken {
    Budget::new(limits, spent).reserve(&ask(), Some(PRICE)).unwrap_err()
}

#[test]
fn each_bound_is_named_before_it_is_broken() {
    let calls =
        broken(Limits { calls_max: Some(3), ..Limits::default() }, Spent { calls: 3, ..Spent::default() });
    assert_eq!(calls.bound(), Bound::Calls);
    assert_eq!(calls.to_string(), "max_calls is 3: 3 were spent, and the next question may need 1 more");
    assert_eq!(calls.hint(), "raise max_calls and continue: nothing that was answered is lost");
    let seconds = broken(
        Limits { seconds_max: Some(60), ..Limits::default() },
        Spent { seconds: 60, ..Spent::default() },
    );
    assert_eq!(seconds.bound(), Bound::Seconds);
    let tokens = broken(
        Limits { tokens_max: Some(1_000), ..Limits::default() },
        Spent { tokens: 900, ..Spent::default() },
    );
    assert_eq!(tokens.bound(), Bound::Tokens);
    let cost = broken(Limits { cost_micros_max: Some(100), ..Limits::default() }, Spent::default());
    assert_eq!(cost.bound(), Bound::Cost);
    let unpriced = Budget::new(Limits { cost_micros_max: Some(100), ..Limits::default() }, Spent::default())
        .reserve(&ask(), None);
    assert_eq!(unpriced.unwrap_err(), Broken::Unpriced {});
    let names = Bound::ALL.map(Bound::name);
    assert_eq!(names, ["max_depth", "max_goals", "max_calls", "token_budget", "cost_budget", "seconds"]);
}

#[test]
fn what_is_just_enough_is_allowed_and_one_less_is_not() {
    let needed = estimate_ask(&ask()) + u64::from(ANSWER_TOKENS_MIN);
    let with = |tokens_max| {
        Budget::new(Limits { tokens_max: Some(tokens_max), ..Limits::default() }, Spent::default())
            .reserve(&ask(), None)
            .map(|reserve| reserve.answer_tokens_max)
    };
    assert_eq!(with(needed), Ok(ANSWER_TOKENS_MIN), "the answer is cut to what is left");
    assert!(with(needed - 1).is_err());
    assert_eq!(with(1_000_000), Ok(ask().tokens_max));
    let cost = PRICE.cost(estimate_ask(&ask()), u64::from(ANSWER_TOKENS_MIN));
    let with = |max| {
        Budget::new(Limits { cost_micros_max: Some(max), ..Limits::default() }, Spent::default())
            .reserve(&ask(), Some(PRICE))
            .map(|reserve| reserve.answer_tokens_max)
    };
    assert_eq!(with(cost), Ok(ANSWER_TOKENS_MIN));
    assert!(with(cost - 1).is_err());
    assert_eq!(with(u64::MAX), Ok(ask().tokens_max));
}

#[test]
fn questions_under_way_count_until_they_are_settled_or_released() {
    let mut budget = Budget::new(Limits { calls_max: Some(2), ..Limits::default() }, Spent::default());
    let one = budget.reserve(&ask(), None).unwrap();
    let two = budget.reserve(&ask(), None).unwrap();
    assert!(budget.reserve(&ask(), None).is_err());
    budget.release(two);
    let two = budget.reserve(&ask(), None).unwrap();
    budget.settle(one, 110, PRICE.cost(100, 10));
    budget.settle(two, 110, PRICE.cost(100, 10));
    assert_eq!(budget.spent(), Spent { calls: 2, tokens: 220, cost_micros: 2 * (300 + 150), seconds: 0 });
    budget.set_seconds(7);
    assert_eq!(budget.spent().seconds, 7);
    assert!(budget.reserve(&ask(), None).is_err());
}

#[test]
fn a_question_that_is_asked_once_more_needs_as_much_as_before() {
    let whole = estimate_ask(&ask()) + u64::from(ask().tokens_max);
    let limits = Limits { tokens_max: Some(whole), ..Limits::default() };
    let mut budget = Budget::new(limits, Spent::default());
    let first = budget.reserve(&ask(), None).unwrap();
    budget.settle(first, 0, 0);
    let again = budget.reserve_again(&ask(), None).unwrap();
    assert_eq!(again.answer_tokens_max, ask().tokens_max);
    budget.settle(again, 1, 0);
    assert_eq!(budget.reserve_again(&ask(), None).unwrap_err().bound(), Bound::Tokens);
    assert!(budget.reserve(&ask(), None).is_ok(), "a shorter answer would still fit");
}

#[test]
fn the_dearer_of_two_is_dearer_in_both_ways() {
    let (one, other) = (Price { micros_in: 1, micros_out: 9 }, Price { micros_in: 5, micros_out: 2 });
    assert_eq!(one.dearer(other), Price { micros_in: 5, micros_out: 9 });
}
