// Keeps the focus nearby. When a focused button disappears after its action, keyboard users would otherwise start at
// the top of the page again.

/** Watches until the returned function is called. */
export function keepFocus(): () => void {
  let around: HTMLElement[] = [];

  function came(event: FocusEvent): void {
    around = [];
    for (let at = event.target as HTMLElement | null; at; at = at.parentElement) around.push(at);
  }

  function look(): void {
    const lost = document.activeElement === document.body || document.activeElement === null;
    if (!lost || around.length === 0 || around[0]?.isConnected) return;
    const near = around.find((element) => element.isConnected && element.hasAttribute("tabindex"));
    around = [];
    (near ?? document.getElementById("main"))?.focus({ preventScroll: true });
  }

  const watch = new MutationObserver(look);
  watch.observe(document.body, { childList: true, subtree: true });
  document.addEventListener("focusin", came);
  return () => {
    watch.disconnect();
    document.removeEventListener("focusin", came);
  };
}
