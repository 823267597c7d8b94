"use strict";
// Adds a search over the texts that the page shows. Without scripts the page has no search and is otherwise the same.
(() => {
  const place = document.getElementById("find");
  if (place === null) return;
  const items = Array.from(document.querySelectorAll("[data-find]"));
  let texts = null;
  const label = document.createElement("label");
  const input = document.createElement("input");
  const found = document.createElement("output");
  input.type = "search";
  input.autocomplete = "off";
  input.spellcheck = false;
  label.append("Search in the texts and ids on this page ", input);
  place.append(label, " ", found);
  place.className = "find";
  const search = () => {
    const wanted = input.value.toLowerCase();
    texts = texts ?? items.map((item) => item.textContent.toLowerCase());
    let count = 0;
    items.forEach((item, number) => {
      const is_found = texts[number].includes(wanted);
      item.hidden = !is_found;
      count += is_found;
    });
    found.textContent = wanted === "" ? "" : `${count} of ${items.length} entries`;
  };
  input.addEventListener("input", search);
})();
