//! Texts of plans: Markdown is legible, and nothing in it steers the terminal.

use waypost_core::Draft;
use waypost_text::is_unsafe_char;
use waypost_tui::app::Screen;

use crate::{World, golden_in_all_sizes};

const BODY: &str = "# Release notes

A plan with **bold**, *italic*, ~~old~~ and `code`, and [a link](https://example.org/x).

1. first
2. second, which is so long that it is wrapped at the end of the line, and goes on below its own beginning
   - nested
   - [x] done
   - [ ] open

> quoted words
> in two lines

```sh
make all   # keeps   its   spaces
```

| name | number |
|------|-------:|
| one  | 1 |
| 日本 | 22 |

## Risks

<script>alert(1)</script> is shown as written.\u{1b}[31m And \u{202e}this too.
";

fn document() -> Draft {
    let mut draft = Draft::new("Release 2.0");
    draft.spec.body = BODY.to_owned();
    draft
}

#[test]
fn a_plan_without_tasks_opens_as_its_text() {
    let mut world = World::plan_list(vec![("doc", document())], (80, 24));
    assert_eq!(world.lines_with("Release 2.0")[0].matches("text").count(), 1, "{}", world.screen());
    world.press("enter");
    assert!(matches!(world.app.top(), Some(Screen::Text(_))), "{}", world.screen());
    let buffer = world.buffer();
    assert!(buffer.content.iter().all(|cell| !cell.symbol().contains(is_unsafe_char)));
    golden_in_all_sizes("text", world);
}

#[test]
fn a_text_is_searched_and_gone_through_by_its_headings() {
    let mut world = World::plan_list(vec![("doc", document())], (60, 15));
    world.press("enter");
    assert!(!world.screen().contains("Risks"));
    world.press("n");
    assert!(world.screen().contains("Risks"), "{}", world.screen());
    world.press("home / ").type_text("keeps");
    assert!(world.screen().contains("1 line"), "{}", world.screen());
    world.press("enter");
    assert!(world.screen().contains("make all   # keeps   its   spaces"), "{}", world.screen());
    world.press("esc");
    assert!(matches!(world.app.top(), Some(Screen::PlanList(_))));
}

#[test]
fn a_plan_without_a_text_says_how_to_write_one() {
    let mut world = World::plan_list(vec![("plan-1", crate::example())], (80, 24));
    world.press("4");
    assert!(world.screen().contains("This plan has no text"), "{}", world.screen());
}
