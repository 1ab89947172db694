// Draws what Python filtered and sorted. Data become text nodes only: nothing here parses markup.
function element(name, text, attributes = {}) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function bar(model) {
  const box = element("div", undefined, { class: "wb-bar" });
  const query = element("input", undefined, { type: "search", placeholder: "filter", "aria-label": "filter rows" });
  query.value = model.get("query");
  query.addEventListener("input", () => { model.set("query", query.value); model.save_changes(); });
  const status = element("select", undefined, { "aria-label": "verdict" });
  for (const value of ["", ...model.get("statuses")]) {
    const option = element("option", value || "all");
    option.value = value;
    status.append(option);
  }
  status.value = model.get("status");
  status.addEventListener("change", () => { model.set("status", status.value); model.save_changes(); });
  const count = element("span");
  box.append(query, status, count);
  return { box, count };
}

function head(model, columns) {
  const row = element("tr");
  for (const column of columns) {
    const sorted = model.get("sort_by") === column;
    const down = model.get("descending");
    const cell = element("th", undefined, { "aria-sort": sorted ? (down ? "descending" : "ascending") : "none" });
    const button = element("button", column + (sorted ? (down ? " ▾" : " ▴") : ""));
    button.addEventListener("click", () => {
      model.set("descending", sorted && !down);
      model.set("sort_by", column);
      model.save_changes();
    });
    cell.append(button);
    row.append(cell);
  }
  const section = element("thead");
  section.append(row);
  return section;
}

function body(model) {
  const section = element("tbody");
  for (const { index, cells } of model.get("shown")) {
    const row = element("tr", undefined, { tabindex: "0", "aria-selected": String(index === model.get("selected")) });
    for (const cell of cells) row.append(element("td", cell));
    const choose = () => { model.set("selected", index); model.save_changes(); };
    row.addEventListener("click", choose);
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(); });
    section.append(row);
  }
  return section;
}

function render({ model, el }) {
  const root = element("div", undefined, { class: "wb-view", "data-lm-suppress-shortcuts": "true" }); // keys in here are not the notebook's
  const { box, count } = bar(model);
  const table = element("table");
  const scroll = element("div", undefined, { class: "wb-scroll" });
  scroll.append(table);
  const draw = () => {
    count.textContent = `${model.get("shown").length} of ${model.get("total")} rows`;
    table.replaceChildren(head(model, model.get("columns")), body(model));
  };
  // Drawing anew takes the focus from a row or a heading; it goes back to the same one.
  const redraw = () => {
    const at = table.contains(document.activeElement) ? document.activeElement : null;
    const heading = at?.closest("th")?.cellIndex ?? -1;
    draw();
    if (at) (heading >= 0 ? table.querySelectorAll("th button")[heading] : table)?.focus({ preventScroll: true });
  };
  const mark = () => {
    for (const [i, { index }] of model.get("shown").entries()) {
      table.tBodies[0]?.rows[i]?.setAttribute("aria-selected", String(index === model.get("selected")));
    }
  };
  for (const name of ["shown", "sort_by", "descending"]) model.on(`change:${name}`, redraw);
  model.on("change:selected", mark);
  draw();
  root.append(box, scroll);
  el.append(root);
}

export default { render };
