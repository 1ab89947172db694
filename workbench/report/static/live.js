// Draws what Python has read of a run. Data become text nodes only: nothing here parses markup.
// Nothing that can have the focus is ever replaced, so an update takes it from nobody.
function element(name, text, attributes = {}) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function spark({ label, values, last, top, colour }) {
  const [width, height] = [200, 44];
  const box = element("div", undefined, { class: "wb-spark" });
  const canvas = element("canvas", undefined, { role: "img", "aria-label": `${label}: ${values.length} points, last ${last}` });
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  canvas.style.width = `${width}px`;
  const pen = canvas.getContext("2d");
  pen.scale(2, 2);
  [pen.strokeStyle, pen.fillStyle, pen.lineWidth] = [colour, colour, 1.5];
  const across = (width - 4) / Math.max(values.length - 1, 1);
  const at = (value) => 2 + (height - 4) * (1 - Math.min(Math.max(value / top, 0), 1));
  for (const [i, value] of values.entries()) pen.lineTo(2 + i * across, at(value));
  pen.stroke();
  if (values.length === 1) pen.fillRect(1, at(values[0]) - 2, 5, 4);
  box.append(element("div", `${label} ${last}`), canvas);
  return box;
}

function table(names, rows) {
  const made = element("table");
  const head = element("tr");
  for (const name of names) head.append(element("th", name));
  const top = element("thead");
  top.append(head);
  const body = element("tbody");
  for (const cells of rows) {
    const row = element("tr");
    for (const cell of cells) row.append(element("td", cell));
    body.append(row);
  }
  made.append(top, body);
  return made;
}

function drawSeen(at, seen) {
  at.title.textContent = seen.title;
  if (at.standing.textContent !== seen.standing) at.standing.textContent = seen.standing;
  at.facts.replaceChildren(...seen.facts.map(([name, value, note]) => {
    const box = element("div", undefined, { class: "wb-fact", title: note });
    box.append(element("dt", name), element("dd", value), element("dd", note, { class: "wb-note" }));
    return box;
  }));
  at.lines.replaceChildren(...seen.lines.map(spark));
  at.last.replaceChildren(...seen.last.map(([kind, numbers]) => {
    const line = element("p");
    line.append(element("b", `last ${kind} `), element("span", numbers.map(([k, v]) => `${k} ${v}`).join(" · ")));
    return line;
  }));
  const refused = seen.rejected.map((one) => [one.task, one.stage, one.kinds, one.why]);
  const [first, ...rest] = refused;
  const names = ["task", "stage", "kinds", "why"];
  at.newest.replaceChildren(...(first ? [table(names, [first])] : [element("p", "none yet")]));
  at.more.hidden = !rest.length;
  at.moreName.textContent = `${rest.length} before it`;
  at.earlier.replaceChildren(...(rest.length ? [table(names, rest)] : []));
}

// A list box: the focus stays on the list, and the option it is at is named by aria-activedescendant.
function listBox(model, mine) {
  const list = element("div", undefined, { class: "wb-list", role: "listbox", tabindex: "0", "aria-label": "trials, newest first" });
  let active = -1; // position of the trial, which stays when newer ones come
  const rows = () => model.get("trials").rows ?? [];
  const place = () => rows().findIndex(([position]) => position === active);
  const mark = () => {
    const [at, opened] = [place(), model.get("chosen")];
    for (const [i, node] of [...list.children].entries()) {
      node.setAttribute("aria-selected", String(rows()[i]?.[0] === opened));
      node.classList.toggle("wb-active", i === at);
    }
    if (at >= 0) list.setAttribute("aria-activedescendant", list.children[at].id);
    else list.removeAttribute("aria-activedescendant");
  };
  const open = () => { model.set("chosen", active); model.save_changes(); };
  const go = (to) => {
    const all = rows();
    if (!all.length) return;
    active = all[Math.min(Math.max(to, 0), all.length - 1)][0];
    mark();
    list.children[place()].scrollIntoView({ block: "nearest" });
  };
  const draw = () => {
    list.replaceChildren(...rows().map(([position, cells]) => {
      const node = element("div", undefined, { role: "option", id: `${mine}-${position}` });
      for (const cell of cells) node.append(element("span", cell, { title: cell }));
      node.addEventListener("click", () => { active = position; mark(); open(); });
      return node;
    }));
    if (!rows().length) list.append(element("p", "none yet"));
    mark();
  };
  const keys = {
    ArrowDown: () => go(place() + 1),
    ArrowUp: () => go(place() < 0 ? 0 : place() - 1),
    Home: () => go(0),
    End: () => go(rows().length - 1),
    Enter: () => { if (place() >= 0) open(); },
    " ": () => { if (place() >= 0) open(); },
    Escape: () => { model.set("chosen", -1); model.save_changes(); },
  };
  return { list, draw, mark, keys };
}

function render({ model, el }) {
  const mine = `wb-${Math.random().toString(36).slice(2)}`;
  const root = element("section", undefined, { class: "wb-view wb-live", "aria-label": "live view of a run", "data-lm-suppress-shortcuts": "true" });
  const at = {
    title: element("b"), standing: element("span", "", { role: "status" }), facts: element("dl"),
    lines: element("div", undefined, { class: "wb-tables" }), last: element("div"), newest: element("div"),
    more: element("details"), moreName: element("summary"), earlier: element("div"),
  };
  const head = element("p");
  head.append(at.title, element("span", " "), at.standing);
  at.more.append(at.moreName, at.earlier);

  const bar = element("div", undefined, { class: "wb-bar" });
  const query = element("input", undefined, { type: "search", placeholder: "find a trial: id, task, agent …", "aria-label": "find a trial" });
  const [newest, older] = [element("button", "newest"), element("button", "older")];
  const note = element("span", "", { role: "status" });
  bar.append(query, newest, older, note);
  const set = (name, value) => { model.set(name, value); model.save_changes(); };
  let waiting = 0;
  query.value = model.get("query");
  query.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => set("query", query.value), 200); });
  newest.addEventListener("click", () => set("before", -1));
  older.addEventListener("click", () => { if (older.getAttribute("aria-disabled") !== "true") set("before", model.get("trials").older); });
  const trials = listBox(model, mine);

  const drawTrials = () => {
    const found = model.get("trials");
    note.textContent = found.note ?? "";
    // Disabled buttons lose the focus, so these only say that they are.
    newest.setAttribute("aria-disabled", String(!found.newer));
    older.setAttribute("aria-disabled", String(!(found.older > 0)));
    trials.draw();
  };
  const draw = () => drawSeen(at, model.get("seen"));
  // Jupyter listens on the document before anything below it hears a key, so this listens on the window.
  const onKey = (event) => {
    if (!root.contains(event.target) || event.key === "Tab" || event.ctrlKey || event.metaKey || event.altKey) return;
    event.stopImmediatePropagation();
    const act = event.target === trials.list && trials.keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
  window.addEventListener("keydown", onKey, true);
  const watched = [["change:seen", draw], ["change:trials", drawTrials], ["change:chosen", trials.mark]];
  for (const [name, handler] of watched) model.on(name, handler);
  root.append(
    head, at.facts, at.lines, at.last, element("h4", "last rejected"), at.newest, at.more, element("h4", "trials"), bar, trials.list,
  );
  draw();
  drawTrials();
  el.append(root);
  return () => {
    window.removeEventListener("keydown", onKey, true);
    for (const [name, handler] of watched) model.off(name, handler);
  };
}

export default { render };
