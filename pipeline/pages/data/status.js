"use strict";
// Replaces the figures every two seconds by those of a new page, and adds new drops. The server has escaped all
// texts, and a parsed page runs nothing.
(() => {
  const EVERY_MS = 2000;
  const figures = () => document.getElementById("figures");

  function addDrops(page) {
    const ours = document.getElementById("drops");
    const theirs = page.getElementById("drops");
    if (ours === null || theirs === null) return;
    for (const drop of [...theirs.children].reverse()) {
      const before = document.getElementById(drop.id);
      if (before !== null) before.replaceWith(drop);
      else ours.prepend(drop);
    }
    while (ours.children.length > Number(ours.dataset.most)) ours.lastElementChild.remove();
    ours.dataset.last = theirs.dataset.last;
  }

  async function refresh() {
    const drops = document.getElementById("drops");
    const answer = await fetch(drops === null ? "/" : `/?after=${drops.dataset.last}`, {
      signal: AbortSignal.timeout(10000),
    });
    if (!answer.ok) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("figures");
    if (fresh.dataset.run !== figures().dataset.run) {
      location.reload();
      return;
    }
    // A selection would be lost.
    if (getSelection().isCollapsed) figures().replaceWith(fresh);
    addDrops(page);
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
