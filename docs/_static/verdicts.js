// Tables of claims: verdicts in colour, and buttons that show only those that hold or differ.
document.addEventListener("DOMContentLoaded", () => {
  const rows = [];
  for (const table of document.querySelectorAll(".bd-article table.table")) {
    const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    const column = heads.indexOf("verdict");
    if (column < 0) continue;
    table.classList.add("claims");
    for (const row of table.tBodies[0].rows) {
      const cell = row.cells[column];
      const word = cell.textContent.trim().match(/^(holds|differs)/)?.[0];
      if (!word) continue;
      const text = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT).nextNode();
      const badge = document.createElement("span");
      badge.className = `verdict ${word}`;
      badge.textContent = word;
      text.textContent = text.textContent.trimStart().slice(word.length);
      text.parentNode.insertBefore(badge, text);
      rows.push({ row, word, section: table.closest("section") });
    }
  }
  const sections = new Set(rows.map(({ section }) => section));
  if (sections.size < 2) return;
  const filter = document.createElement("div");
  filter.className = "verdict-filter";
  filter.setAttribute("role", "group");
  filter.setAttribute("aria-label", "Claims to show");
  for (const [label, wanted] of [["all claims", null], ["that hold", "holds"], ["that differ", "differs"]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.setAttribute("aria-pressed", wanted === null);
    button.addEventListener("click", () => {
      for (const one of filter.children) one.setAttribute("aria-pressed", one === button);
      for (const one of rows) one.row.hidden = wanted !== null && one.word !== wanted;
      for (const section of sections) {
        section.hidden = rows.every((one) => one.section !== section || one.row.hidden);
      }
    });
    filter.append(button);
  }
  [...sections][0].before(filter);
});
