// Draws what Python found. Data become text nodes only: nothing here parses markup.
const PAUSE = 250; // ms without a key before the search begins

function element(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

function hitRow(hit, selected, choose) {
  const row = element("button", undefined, "wb-hit");
  row.append(element("b", hit.file), ` ${hit.place}: ${hit.before}`, element("mark", hit.match), hit.after);
  row.setAttribute("aria-selected", String(selected));
  row.addEventListener("click", choose);
  return row;
}

function turnBox({ head, now, blocks }) {
  const box = element("div", undefined, "wb-turn");
  box.append(element(now ? "b" : "span", head));
  for (const { kind, text, more } of blocks) {
    box.append(element("pre", more ? `${text}\n… ${more}` : text, kind === "runs" || kind === "arguments" ? "wb-command" : ""));
  }
  return box;
}

function render({ model, el }) {
  const root = element("div", undefined, "wb-view");
  const bar = element("div", undefined, "wb-bar");
  const query = element("input");
  query.type = "search";
  query.placeholder = "find in all traces";
  query.setAttribute("aria-label", "find in all traces");
  query.value = model.get("query");
  const status = element("span");
  const list = element("div", undefined, "wb-scroll");
  list.dataset.lmSuppressShortcuts = "true"; // arrows move in the list, not among the notebook's cells
  const shown = element("div");
  let timer = 0;
  const ask = () => { clearTimeout(timer); model.set("query", query.value); model.save_changes(); };
  query.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, PAUSE); });
  query.addEventListener("keydown", (event) => { if (event.key === "Enter") ask(); });
  const choose = (index) => { model.set("selected", index); model.save_changes(); };
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const next = step && list.children[[...list.children].indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
    choose([...list.children].indexOf(next));
  });
  const drawHits = () => list.replaceChildren(...model.get("hits").map((hit, i) => hitRow(hit, i === model.get("selected"), () => choose(i))));
  const drawStatus = () => { status.textContent = model.get("status"); };
  const drawSelected = () => [...list.children].forEach((row, i) => row.setAttribute("aria-selected", String(i === model.get("selected"))));
  const drawShown = () => {
    const { title, turns } = model.get("shown");
    shown.replaceChildren(...(turns ? [element("p", title), ...turns.map(turnBox)] : []));
  };
  const draws = { hits: drawHits, status: drawStatus, selected: drawSelected, shown: drawShown };
  for (const [name, draw] of Object.entries(draws)) {
    model.on(`change:${name}`, draw);
    draw();
  }
  bar.append(query, status);
  root.append(bar, list, shown);
  el.append(root);
  return () => { for (const [name, draw] of Object.entries(draws)) model.off(`change:${name}`, draw); };
}

export default { render };
