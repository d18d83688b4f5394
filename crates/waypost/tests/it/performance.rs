//! Answers about a large plan stay short. `cargo xtask bench process` has what they take.

use crate::transcript::Workspace;

#[test]
fn commands_on_ten_thousand_tasks_answer_briefly() {
    let workspace = Workspace::new();
    let tasks: Vec<serde_json::Value> = (1..=10_000)
        .map(|number| {
            let depends_on = if number > 3 { vec![format!("t{}", number - 3)] } else { Vec::new() };
            serde_json::json!({ "id": format!("t{number}"), "description": format!("Step {number}"), "depends_on": depends_on })
        })
        .collect();
    let plan = serde_json::json!({ "format": "waypost/1", "id": "large", "title": "Large", "tasks": tasks });
    std::fs::write(workspace.work().join("large.json"), plan.to_string()).unwrap();
    for words in [
        vec!["validate", "large.json"],
        vec!["import", "large.json"],
        vec!["list"],
        vec!["show", "large"],
        vec!["show", "large", "--json"],
        vec!["show", "large", "--dag"],
        vec!["next", "large"],
        vec!["next"],
        vec!["add", "large", "One more"],
        vec!["done", "large", "t1"],
    ] {
        let output = workspace.waypost(&words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout.len() < 20_000, "{words:?} answers with {} bytes", output.stdout.len());
    }
}
