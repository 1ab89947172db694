// Draws one trial. Data become text nodes only: nothing here parses markup.
function element(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function pairs(rows, names) {
  const table = element("table");
  const head = element("tr");
  for (const name of names) head.append(element("th", name));
  table.append(head);
  for (const cells of rows) {
    const row = element("tr");
    for (const cell of cells) row.append(element("td", cell));
    table.append(row);
  }
  return table;
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
  if (turn.observation) box.append(fold(`saw ${turn.observation.split("\n").length} lines`, turn.observation));
  return box;
}

function render({ model, el }) {
  const root = element("div", undefined, "wb-view");
  const bar = element("div", undefined, "wb-bar");
  const query = element("input");
  query.type = "search";
  query.placeholder = "find in turns";
  query.setAttribute("aria-label", "find in turns");
  query.value = model.get("query");
  query.addEventListener("input", () => { model.set("query", query.value); model.save_changes(); });
  const all = element("button", "unfold all");
  const turns = element("div", undefined, "wb-scroll");
  all.addEventListener("click", () => {
    const open = all.textContent === "unfold all";
    for (const details of turns.querySelectorAll("details")) details.open = open;
    all.textContent = open ? "fold all" : "unfold all";
  });
  const count = element("span");
  bar.append(query, all, count);
  const draw = () => {
    const list = model.get("turns");
    const matches = model.get("matches");
    count.textContent = `${matches.length} of ${list.length} turns`;
    turns.replaceChildren(...matches.map((i) => turnBox(list[i])));
  };
  model.on("change:matches", draw);
  model.on("change:turns", draw);
  draw();
  root.append(element("b", model.get("title")), pairs(model.get("facts"), ["what", "value"]), bar, turns);
  if (model.get("tests").length) root.append(pairs(model.get("tests"), ["test", "status"]));
  if (model.get("verifier")) root.append(fold("verifier output", model.get("verifier")));
  el.append(root);
}

export default { render };
