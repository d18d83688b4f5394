// Plans to begin with, as Markdown checklists. None has work for machines, so nothing runs before somebody adds it.

export interface PlanTemplate {
  name: string;
  about: string;
  text: string;
}

export const TEMPLATES: PlanTemplate[] = [
  {
    name: "Release",
    about: "Notes, checks, tag and announcement, in order",
    text: `---
title: Release 1.0
goal: Ship 1.0 to everybody
---

## Tasks

- [ ] notes: Write the release notes
- [ ] freeze: Freeze the branch
- [ ] tests: Run every test on the frozen branch  (after: freeze)
- [ ] try: Try the upgrade from the last release  (after: freeze)
- [ ] tag: Tag and publish  (after: notes, tests, try)
- [ ] announce: Announce it  (after: tag)
`,
  },
  {
    name: "Bug",
    about: "Reproduce, find, mend, keep it mended",
    text: `---
title: Mend the bug
goal: The bug is gone and stays gone
---

## Tasks

- [ ] reproduce: Reproduce it with a failing test
- [ ] cause: Find the cause and write it down  (after: reproduce)
- [ ] mend: Mend the cause, not the symptom  (after: cause)
- [ ] others: Look for the same mistake elsewhere  (after: cause)
- [ ] review: Review and merge  (after: mend, others)
`,
  },
  {
    name: "Migration",
    about: "Rehearse, back up, move, verify, clean up",
    text: `---
title: Move to the new database
goal: All data is in the new database and nothing was lost
---

## Tasks

- [ ] inventory: List what is stored and who reads it
- [ ] rehearse: Rehearse on a copy and measure how long it takes  (after: inventory)
- [ ] backup: Back up and restore the backup once  (after: inventory)
- [ ] move: Move the data  (after: rehearse, backup)
- [ ] verify: Compare counts and samples  (after: move)
- [ ] switch: Switch readers over  (after: verify)
- [ ] clean: Remove the old database after a month  (after: switch)
`,
  },
  {
    name: "Research",
    about: "Question, sources, experiments, answer",
    text: `---
title: Answer a question
goal: A page with the answer and what it rests on
---

## Tasks

- [ ] question: Write down the question and what would answer it
- [ ] sources: Collect sources  (after: question)
- [ ] experiments: Design and run experiments  (after: question)
- [ ] answer: Write the answer with its evidence  (after: sources, experiments)
- [ ] doubt: Have somebody doubt it  (after: answer)
`,
  },
];
