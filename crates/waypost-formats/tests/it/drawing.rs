//! The layout of boxes and edges: whatever the graph, no edge passes a box, and the picture has the shape of a screen.

use std::collections::BTreeSet;

use waypost_formats::{Drawing, Frame, Item, crossings, draw};
use waypost_testkit::SeededRng;

const DESKTOP: (f64, f64) = (1_440.0, 800.0);
const PHONE: (f64, f64) = (390.0, 700.0);

/// Boxes, and the arrows between them.
type Plan = (Vec<Item>, Vec<(usize, usize)>);

fn task(parent: Option<usize>) -> Item {
    Item { size: (172.0, 44.0), parent, is_container: false }
}

fn container(parent: Option<usize>) -> Item {
    Item { is_container: true, ..task(parent) }
}

/// An item with the containers around it.
fn around(items: &[Item], item: usize) -> Vec<usize> {
    let mut found = vec![item];
    while let Some(outer) = items[found[found.len() - 1]].parent {
        found.push(outer);
    }
    found
}

fn inside(frame: Frame, (x, y): (f64, f64)) -> bool {
    x > frame.x + 0.5
        && x < frame.x + frame.width - 0.5
        && y > frame.y + 0.5
        && y < frame.y + frame.height - 0.5
}

/// Fails unless boxes are apart or inside each other, and every edge goes at right angles from the right side of its first box to the
/// left side of its last, through no other.
fn check(items: &[Item], arrows: &[(usize, usize)], drawing: &Drawing) {
    let all: Vec<Vec<usize>> = (0..items.len()).map(|item| around(items, item)).collect();
    for (one, frame) in drawing.frames.iter().enumerate() {
        assert!(frame.x >= 0.0 && frame.x + frame.width <= drawing.width + 0.5, "{one}: {frame:?}");
        assert!(frame.y >= 0.0 && frame.y + frame.height <= drawing.height + 0.5, "{one}: {frame:?}");
        for (other, second) in drawing.frames.iter().enumerate().take(one) {
            if all[one].contains(&other) {
                let corners = [
                    (frame.x + 1.0, frame.y + 1.0),
                    (frame.x + frame.width - 1.0, frame.y + frame.height - 1.0),
                ];
                assert!(corners.into_iter().all(|corner| inside(*second, corner)), "{one} is inside {other}");
                continue;
            }
            let apart = frame.x + frame.width <= second.x
                || second.x + second.width <= frame.x
                || frame.y + frame.height <= second.y
                || second.y + second.height <= frame.y;
            assert!(apart, "{one} and {other} overlap: {frame:?} {second:?}");
        }
    }
    for (&(from, to), route) in arrows.iter().zip(&drawing.routes) {
        let is_nested = all[from].contains(&to) || all[to].contains(&from);
        assert_eq!(route.is_empty(), is_nested, "{from} → {to}");
        let ([first, .., last], false) = (route.as_slice(), is_nested) else { continue };
        let (begin, end) = (drawing.frames[from], drawing.frames[to]);
        assert!((first.0 - begin.x - begin.width).abs() < 0.5, "{from} → {to} leaves at the right");
        assert!((last.0 - end.x).abs() < 0.5, "{from} → {to} arrives at the left");
        for pair in route.windows(2) {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            assert!(x0 == x1 || y0 == y1, "{from} → {to} has right angles: {pair:?}");
            let (left, right, top, bottom) = (x0.min(x1), x0.max(x1), y0.min(y1), y0.max(y1));
            for (one, frame) in drawing.frames.iter().enumerate() {
                let contains = |item: usize| all[item].contains(&one) && item != one;
                if contains(from) || contains(to) {
                    continue;
                }
                let passes = right > frame.x + 0.5
                    && left < frame.x + frame.width - 0.5
                    && bottom > frame.y + 0.5
                    && top < frame.y + frame.height - 0.5;
                assert!(!passes, "{from} → {to} passes {one} {frame:?} at {pair:?}");
            }
        }
    }
}

/// Boxes of all sizes in containers, with edges of all sorts: also in circles, between containers, and twice.
fn anything(seed: u64) -> Plan {
    let mut rng = SeededRng::new(seed);
    let count = 2 + rng.below(60);
    let mut items: Vec<Item> = Vec::new();
    for item in 0..count {
        let parent = if item > 0 && rng.chance(35) { Some(rng.below(item)) } else { None };
        let parent = parent.filter(|&parent: &usize| items[parent].is_container);
        let size = (60.0 + rng.below(200) as f64, 20.0 + rng.below(90) as f64);
        items.push(Item { size, parent, is_container: rng.chance(25) });
    }
    let arrows = (0..rng.below(count * 3))
        .map(|_| {
            let (one, other) = (rng.below(count), rng.below(count));
            if rng.chance(80) { (one.min(other), one.max(other)) } else { (one, other) }
        })
        .collect();
    (items, arrows)
}

/// Each task depends on some of those shortly before it.
fn layered(count: usize, dependencies: usize, reach: usize) -> Plan {
    let mut rng = SeededRng::new(7);
    let mut arrows = BTreeSet::new();
    for to in 1..count {
        for _ in 0..dependencies {
            arrows.insert((to - 1 - rng.below(reach.min(to)), to));
        }
    }
    (vec![task(None); count], arrows.into_iter().collect())
}

/// Levels of forty tasks, each of which depends on two of the level before.
fn wide(count: usize) -> Plan {
    let beside = |to: usize| if to % 40 == 39 { to - 41 } else { to - 39 };
    let arrows = (40..count).flat_map(|to| [(to - 40, to), (beside(to), to)]).collect();
    (vec![task(None); count], arrows)
}

/// One task, many that depend on it, and one that depends on all of them.
fn fan(width: usize) -> Plan {
    let arrows = (1..=width).flat_map(|middle| [(0, middle), (middle, width + 1)]).collect();
    (vec![task(None); width + 2], arrows)
}

/// A release: tests and images in containers, a chain in another, and some tasks around.
fn release() -> Plan {
    let mut items = vec![task(None), task(None)];
    let mut arrows = vec![(0, 1)];
    let tests = items.len();
    items.push(container(None));
    for test in 1..=8 {
        items.push(task(Some(tests)));
        arrows.push((1, tests + test));
    }
    let images = items.len();
    items.push(container(None));
    for image in 1..=6 {
        items.push(task(Some(images)));
        arrows.push((tests + image, images + image));
    }
    arrows.extend([(tests + 7, images + 5), (tests + 8, images + 6)]);
    let staging = items.len();
    items.push(container(None));
    items.extend((0..4).map(|_| task(Some(staging))));
    arrows.extend((1..=6).map(|image| (images + image, staging + 1)));
    arrows.extend((1..4).map(|step| (staging + step, staging + step + 1)));
    let live = items.len();
    items.push(task(None));
    arrows.extend([(staging + 4, live), (1, live)]);
    (items, arrows)
}

#[test]
fn no_edge_passes_a_box_whatever_the_graph() {
    for seed in 0..30 {
        let (items, arrows) = anything(seed);
        for window in [DESKTOP, PHONE] {
            let drawing = draw(&items, &arrows, window);
            check(&items, &arrows, &drawing);
            assert_eq!(drawing, draw(&items, &arrows, window), "the same input gives the same picture");
        }
    }
}

#[test]
fn the_picture_of_a_plan_has_the_shape_of_a_screen() {
    let chain = |count: usize| (vec![task(None); count], (1..count).map(|to| (to - 1, to)).collect());
    let apart = |count: usize| (vec![task(None); count], Vec::new());
    let plans: [(&str, Plan); 12] = [
        ("a chain", chain(60)),
        ("a long chain", chain(300)),
        ("a fan", fan(40)),
        ("a wide fan", fan(300)),
        ("nothing in common", apart(60)),
        ("nothing at all in common", apart(1_000)),
        ("sparse", layered(60, 1, 20)),
        ("some layers", layered(60, 2, 10)),
        ("more layers", layered(200, 2, 40)),
        ("levels", wide(200)),
        ("a thousand", wide(1_000)),
        ("a release", release()),
    ];
    for (name, (items, arrows)) in plans {
        let drawing = draw(&items, &arrows, DESKTOP);
        check(&items, &arrows, &drawing);
        let ratio = drawing.width / drawing.height;
        let fits = drawing.width <= DESKTOP.0 && drawing.height <= DESKTOP.1;
        assert!(fits || (1.2..=2.2).contains(&ratio), "{name}: {} × {}", drawing.width, drawing.height);
    }
}

#[test]
fn a_phone_gets_a_higher_picture() {
    let (items, arrows) = layered(60, 2, 10);
    let (desktop, phone) = (draw(&items, &arrows, DESKTOP), draw(&items, &arrows, PHONE));
    assert!(phone.width < desktop.width && phone.height > desktop.height);
    assert!((0.35..0.9).contains(&(phone.width / phone.height)), "{} × {}", phone.width, phone.height);
}

#[test]
fn edges_cross_and_bend_little() {
    let bends =
        |drawing: &Drawing| drawing.routes.iter().map(|route| route.len().saturating_sub(2)).sum::<usize>();
    let figures = |(items, arrows): Plan| {
        let drawing = draw(&items, &arrows, DESKTOP);
        (crossings(&drawing), bends(&drawing))
    };
    for (name, plan, (crossings_max, bends_max)) in [
        ("a fan", fan(40), (0, 440)),
        ("a release", release(), (12, 150)),
        ("layers", layered(60, 2, 10), (100, 500)),
    ] {
        let (crossings, bends) = figures(plan);
        assert!(
            crossings <= crossings_max && bends <= bends_max,
            "{name}: {crossings} crossings, {bends} bends"
        );
    }
}

#[test]
fn edges_with_the_same_ends_share_a_trunk() {
    let (items, arrows) = fan(8);
    let drawing = draw(&items, &arrows, DESKTOP);
    let trunks: BTreeSet<i64> =
        drawing.routes.iter().filter(|route| route.len() > 2).map(|route| route[1].0 as i64).collect();
    assert_eq!(trunks.len(), 2, "one behind the first task, one before the last: {trunks:?}");
    assert!(
        crossings(&drawing) <= 2,
        "only where a straight edge passes its own trunk: {}",
        crossings(&drawing)
    );
}
