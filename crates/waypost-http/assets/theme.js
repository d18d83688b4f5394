// Before anything is drawn, so that nobody sees the other theme first. What was chosen and what holds are two things: without
// a choice the system's holds, also when it changes.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const hold = () => {
    const chosen = root.dataset.chosen;
    root.dataset.theme = chosen === "light" || chosen === "dark" ? chosen : dark.matches ? "dark" : "light";
  };
  try {
    root.dataset.chosen = localStorage.getItem("waypost-theme") ?? "system";
  } catch {
    root.dataset.chosen = "system";
  }
  hold();
  dark.addEventListener("change", hold);
  new MutationObserver(hold).observe(root, { attributeFilter: ["data-chosen"] });
})();
