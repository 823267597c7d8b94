"use strict";
(() => {
  const list = document.getElementById("label-pairs");
  if (!list) return;
  const cards = [...list.querySelectorAll("article")];
  const progress = document.getElementById("label-progress");
  const download = document.getElementById("download-labels");
  const note = document.getElementById("label-note");
  const words = ["same", "different", "unsure"];
  const byKey = { s: "same", d: "different", u: "unsure" };
  const call = document.getElementById("label-call");
  const written = new Map(cards.map((card) => [card, card.dataset.label]));
  const kept = "twinsieve-labels-" + list.dataset.draw;
  const nameOf = (card) => card.dataset.later + "\t" + card.dataset.earlier;

  // A browser may forbid storage to files. Then labels live as long as the page.
  const load = () => {
    try {
      const found = JSON.parse(localStorage.getItem(kept) || "{}");
      return found && typeof found === "object" ? found : {};
    } catch {
      return {};
    }
  };
  const keep = (card) => {
    try {
      localStorage.setItem(kept, JSON.stringify({ ...load(), [nameOf(card)]: card.dataset.label }));
    } catch {
      note.textContent = "This browser does not keep labels of a file: download them before you close the page.";
    }
  };

  const show = () => {
    const counts = Object.fromEntries(words.map((word) => [word, 0]));
    for (const card of cards) {
      const label = card.dataset.label;
      if (label) counts[label] += 1;
      for (const button of card.querySelectorAll("button[data-label]")) {
        button.setAttribute("aria-pressed", String(button.dataset.label === label));
      }
    }
    const done = words.reduce((sum, word) => sum + counts[word], 0);
    const each = words.map((word) => counts[word] + " " + word).join(", ");
    progress.textContent = done + " of " + cards.length + " labelled: " + each;
    download.disabled = done === 0;
    // The head of the page follows what is labelled below, as soon as that differs from the file of labels.
    const changed = cards.some((card) => card.dataset.label !== written.get(card));
    if (changed) {
      const link = document.createElement("a");
      link.href = "#labels";
      link.textContent = progress.textContent;
      call.replaceChildren(link, done ? "; download them, then run tune with --judged labels.tsv." : ".");
    }
  };
  const setLabel = (card, label) => {
    card.dataset.label = label;
    keep(card);
    show();
  };
  const goTo = (card) => {
    if (!card) return;
    card.focus({ preventScroll: true });
    card.scrollIntoView({ block: "center" });
  };
  const current = () => document.activeElement && document.activeElement.closest("article.to-label");

  list.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-label]");
    if (!button) return;
    const card = button.closest("article");
    setLabel(card, card.dataset.label === button.dataset.label ? "" : button.dataset.label);
  });
  document.getElementById("label-start").addEventListener("click", () => {
    goTo(cards.find((card) => !card.dataset.label) || cards[0]);
  });
  document.addEventListener("keydown", (event) => {
    const card = current();
    if (!card || event.ctrlKey || event.altKey || event.metaKey) return;
    const at = cards.indexOf(card);
    const label = byKey[event.key.toLowerCase()];
    if (label) {
      setLabel(card, label);
      goTo(cards[at + 1]);
    } else if (event.key === "ArrowRight") {
      goTo(cards[at + 1]);
    } else if (event.key === "ArrowLeft") {
      goTo(cards[at - 1]);
    } else {
      return;
    }
    event.preventDefault();
  });
  download.addEventListener("click", () => {
    const lines = cards.filter((card) => card.dataset.label).map((card) => nameOf(card) + "\t" + card.dataset.label);
    const content = ["later_id\tearlier_id\tlabel", ...lines, ""].join("\n");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type: "text/tab-separated-values" }));
    link.download = "labels.tsv";
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  });

  const before = load();
  for (const card of cards) {
    const label = before[nameOf(card)];
    if (label === "" || words.includes(label)) card.dataset.label = label;
    for (const buttons of card.querySelectorAll(".buttons")) buttons.hidden = false;
  }
  document.getElementById("label-bar").hidden = false;
  show();
})();
