// Draws what Python has read of a run. Data become text nodes only: nothing here parses markup. view_parts.js stands before this.
// Nothing that can have the focus is ever replaced, so an update takes it from nobody.
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

function render({ model, el }) {
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
  const trials = listBox({
    label: "trials, newest first", rows: () => model.get("trials").rows ?? [], chosen: () => model.get("chosen"),
    open: (key) => set("chosen", key), leave: () => set("chosen", -1),
  });

  const drawTrials = () => {
    const found = model.get("trials");
    note.textContent = found.note ?? "";
    // Disabled buttons lose the focus, so these only say that they are.
    newest.setAttribute("aria-disabled", String(!found.newer));
    older.setAttribute("aria-disabled", String(!(found.older > 0)));
    trials.draw();
  };
  const draw = () => drawSeen(at, model.get("seen"));
  const release = takeKeys(root, (target) => (target === trials.list ? trials.keys : null));
  const watched = [["change:seen", draw], ["change:trials", drawTrials], ["change:chosen", trials.mark]];
  for (const [name, handler] of watched) model.on(name, handler);
  root.append(
    head, at.facts, at.lines, at.last, element("h4", "last rejected"), at.newest, at.more, element("h4", "trials"), bar, trials.list,
  );
  draw();
  drawTrials();
  el.append(root);
  return () => {
    release();
    for (const [name, handler] of watched) model.off(name, handler);
  };
}

export default { render };
