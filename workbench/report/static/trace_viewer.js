// Draws one trial, or two side by side. Data become text nodes only: nothing here parses markup.
function element(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function table(names, rows) {
  const made = element("table");
  const head = element("tr");
  for (const name of names) head.append(element("th", name));
  made.append(head);
  for (const cells of rows) {
    const row = element("tr", undefined, cells.length > 2 && cells[1] !== cells[2] ? "wb-differs" : "");
    for (const cell of cells) row.append(element("td", cell));
    made.append(row);
  }
  return made;
}

function fold(title, text) {
  const details = element("details");
  details.append(element("summary", title), element("pre", text));
  return details;
}

function turnBox(turn) {
  const box = element("div", undefined, turn.failed ? "wb-turn wb-failed" : "wb-turn");
  box.append(element("b", turn.head));
  if (turn.text) box.append(element("pre", turn.text));
  if (turn.command) box.append(element("pre", turn.command, "wb-command"));
  const lines = turn.observation ? turn.observation.split("\n").length : 0;
  if (lines) box.append(fold(`saw ${lines} line${lines > 1 ? "s" : ""}`, turn.observation));
  return box;
}

// Φ after each turn, from 0 at the bottom to 1 at the top.
function progressLine(values) {
  const known = values.map((value, i) => [i, value]).filter(([, value]) => value !== null);
  if (!known.length) return [];
  const [width, height] = [320, 48];
  const picture = element("canvas", undefined, "wb-phi");
  [picture.width, picture.height] = [2 * width, 2 * height];
  picture.style.width = `${width}px`;
  picture.setAttribute("role", "img");
  picture.title = `Φ from ${known[0][1]} to ${known.at(-1)[1]}`;
  picture.setAttribute("aria-label", picture.title);
  const pen = picture.getContext("2d");
  pen.scale(2, 2);
  pen.strokeStyle = "#009e73";
  pen.lineWidth = 1.5;
  const across = (width - 4) / Math.max(values.length - 1, 1);
  for (const [i, value] of known) pen.lineTo(2 + i * across, 2 + (height - 4) * (1 - Math.min(Math.max(value, 0), 1)));
  pen.stroke();
  return [picture];
}

function listOf(page, counts, limit, more) {
  const box = element("div", undefined, "wb-scroll");
  box.append(...page.map(turnBox));
  if (counts[0] > limit) {
    const button = element("button", `${counts[0] - limit} more turns`);
    button.addEventListener("click", more);
    box.append(button);
  }
  return box;
}

function searchBar(model, unfold) {
  const bar = element("div", undefined, "wb-bar");
  const query = element("input");
  query.type = "search";
  query.placeholder = "find in turns";
  query.setAttribute("aria-label", "find in turns");
  query.value = model.get("query");
  query.addEventListener("input", () => { model.set("query", query.value); model.save_changes(); });
  const all = element("button", "unfold all");
  all.addEventListener("click", () => {
    const open = all.textContent === "unfold all";
    unfold(open);
    all.textContent = open ? "fold all" : "unfold all";
  });
  const count = element("span");
  bar.append(query, all, count);
  return { bar, count };
}

function render({ model, el }) {
  const root = element("div", undefined, "wb-view");
  const turns = element("div", undefined, "wb-sides");
  const { bar, count } = searchBar(model, (open) => {
    for (const details of turns.querySelectorAll("details")) details.open = open;
  });
  const more = () => { model.set("limit", model.get("limit") + 200); model.save_changes(); };
  const pair = () => model.get("sides");
  const one = () => ({ progress: model.get("progress"), page: model.get("page"), counts: model.get("counts") });
  const draw = () => {
    const sides = pair() || [one()];
    count.textContent = sides.map(({ counts }) => `${counts[0]} of ${counts[1]} turns`).join(", ");
    turns.replaceChildren(...sides.map((side) => {
      const column = element("div", undefined, "wb-side");
      if (side.title) column.append(element("b", side.title));
      column.append(...progressLine(side.progress), listOf(side.page, side.counts, model.get("limit"), more));
      if (side.verifier) column.append(fold("verifier output", side.verifier));
      return column;
    }));
  };
  const changing = pair() ? ["sides"] : ["page", "counts"];
  for (const name of changing) model.on(`change:${name}`, draw);
  const names = pair() ? ["left", "right"] : ["value"];
  if (!pair()) root.append(element("b", model.get("title")));
  const tables = element("div", undefined, "wb-tables");
  tables.append(table(["what", ...names], model.get("facts")));
  if (model.get("tests").length) tables.append(table(["test", ...(pair() ? names : ["status"])], model.get("tests")));
  root.append(tables, bar, turns);
  if (model.get("verifier")) root.append(fold("verifier output", model.get("verifier")));
  draw();
  el.append(root);
  return () => { for (const name of changing) model.off(`change:${name}`, draw); };
}

export default { render };
