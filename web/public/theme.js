// Before anything is drawn, so that nobody who chose a theme sees the other one first.
try {
  const chosen = localStorage.getItem("waypost-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Without storage the system's choice holds.
}
