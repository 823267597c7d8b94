"use strict";
// Replaces the figures every two seconds by those of a new page. The server has escaped all texts, and a parsed
// page runs nothing.
(() => {
  const EVERY_MS = 2000;
  const figures = () => document.getElementById("figures");

  async function refresh() {
    const answer = await fetch("/", { signal: AbortSignal.timeout(10000) });
    if (!answer.ok) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    // A selection would be lost.
    if (getSelection().isCollapsed) figures().replaceWith(page.getElementById("figures"));
  }

  async function loop() {
    if (!document.hidden) {
      try {
        await refresh();
      } catch {
        document.getElementById("stale").textContent = " · no answer since then: these figures are old";
      }
    }
    setTimeout(loop, EVERY_MS);
  }
  setTimeout(loop, EVERY_MS);
})();
