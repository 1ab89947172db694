// Draws what Python holds and sends it one small message a key; nothing is decided here. Data become text nodes only.
const WAIT = 300; // ms: keys typed while Python has not answered wait this long, then they are not taken
const HELP = [
  ["← →", "previous, next turn of the queue"],
  ["⇧← ⇧→", "previous, next turn without a label"],
  ["Home End", "first, last turn of the queue"],
  ["↑ ↓ PgUp PgDn", "scroll"],
  ["e", "unfold, fold the turn"],
  ["s", "skip: leave it and go on"],
  ["u", "unsure, or sure again"],
  ["n", "note (Enter saves, Shift-Enter is a new line, Esc leaves it as it was)"],
  ["Del", "take the label back, with note and doubt"],
  ["z Ctrl-Z", "undo, without limit"],
  ["y Ctrl-Y Ctrl-Shift-Z", "redo"],
  ["q", "next queue"],
  ["?", "this help"],
  ["Esc", "close the help; else give the keys back to the notebook"],
];

function element(name, className, text, attributes = {}) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function keycap(text) {
  const box = element("span", "wb-keys");
  for (const part of text.split(" ")) box.append(element("kbd", "", part));
  return box;
}

function parts() {
  const root = element("div", "wb-label", undefined, { tabindex: "0", role: "application", "aria-label": "label turns: press ? for help" });
  const names = ["title", "place", "counts", "strip", "pane", "votes", "buttons", "editor", "status", "help"];
  const at = Object.fromEntries(names.map((name) => [name, element("div", `wb-${name}`)]));
  at.status.setAttribute("aria-live", "polite");
  at.canvas = element("canvas", "", undefined, { role: "img" });
  at.strip.append(at.canvas);
  at.queue = element("select", "wb-queue", undefined, { "aria-label": "queue", tabindex: "-1" });
  at.note = element("textarea", "", undefined, { rows: "2", "aria-label": "note", placeholder: "note: Enter saves, Esc leaves it as it was" });
  at.editor.append(at.note);
  at.editor.hidden = true;
  at.help.hidden = true;
  const head = element("div", "wb-head");
  head.append(at.title, at.place, at.counts, at.queue);
  const foot = element("div", "wb-foot");
  foot.append(at.votes, at.buttons, at.editor, at.status);
  root.append(head, at.strip, at.pane, foot, at.help);
  return { root, at };
}

function fillHelp(box, fixed, close) {
  const table = element("table");
  const rows = [...fixed.keys.map(([key, label]) => [key, label]), ...HELP];
  for (const [keys, text] of rows) {
    const row = element("tr");
    const cell = element("td");
    cell.append(keycap(keys));
    row.append(cell, element("td", "", text));
    table.append(row);
  }
  const button = element("button", "wb-close", "close", { tabindex: "-1" });
  button.addEventListener("click", close);
  box.append(button, element("h4", "", "Keys"), table);
  if (!fixed.codebook) return;
  box.append(element("h4", "", fixed.version ? `Codebook, version ${fixed.version}` : "Codebook"));
  for (const line of fixed.codebook.split("\n")) {
    const title = /^#+\s+/.test(line);
    box.append(element("p", title ? "wb-section" : "", line.replace(/^#+\s+/, "") || " "));
  }
}

function turnBox(turn, colours, send, now) {
  const box = element("section", now ? "wb-turn wb-now" : "wb-turn");
  if (turn.failed) box.classList.add("wb-failed");
  const head = element("div", "wb-turnhead");
  head.append(element("span", "", turn.head));
  if (turn.failed) head.append(element("span", "wb-flag", "failed"));
  if (turn.label) {
    const chip = element("span", "wb-chip", turn.label + (turn.unsure ? " ?" : ""));
    chip.style.setProperty("--wb-colour", colours[turn.label]);
    head.append(chip);
  } else if (turn.unsure) {
    head.append(element("span", "wb-flag", "unsure"));
  }
  box.append(head);
  for (const { kind, text, more } of turn.blocks) {
    const pre = element("pre", `wb-${kind}`, text);
    box.append(pre);
    if (!more) continue;
    const button = element("button", "wb-more", now ? `… ${more} (e)` : `… ${more}`, { tabindex: "-1" });
    button.addEventListener("click", () => send(now ? { do: "expand" } : { do: "go", index: turn.index }));
    box.append(button);
  }
  if (!now) {
    head.title = "go to this turn";
    head.addEventListener("click", () => send({ do: "go", index: turn.index }));
  }
  return box;
}

function drawStrip(canvas, view, colours) {
  const marks = view.marks;
  const width = canvas.clientWidth || 600;
  const height = canvas.clientHeight || 10;
  const scale = window.devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const each = width / marks.length;
  const gap = each > 4 ? 1 : 0;
  for (let i = 0; i < marks.length; i += 1) {
    pen.fillStyle = colours[marks[i]] || style.getPropertyValue("--wb-faint");
    pen.fillRect(i * each, 2, Math.max(each - gap, 0.5), height - 4);
  }
  pen.fillStyle = style.color;
  pen.fillRect((view.index - view.start) * each - 0.5, 0, Math.max(each, 2), 2);
  pen.fillRect((view.index - view.start) * each - 0.5, height - 2, Math.max(each, 2), 2);
  canvas.setAttribute("aria-label", view.place);
}

function render({ model, el }) {
  const fixed = model.get("fixed");
  const { root, at } = parts();
  const colours = {};
  for (const [key, label, colour] of fixed.keys) colours[key] = colours[label] = colour;
  const mine = Math.random().toString(36).slice(2);
  let count = 0;
  let pending = ""; // token of the message that Python has not answered
  let asked = 0;
  let shown = -1;
  let refused = 0;
  const typed = [];

  // One message at a time: a key is about the turn that is on the screen.
  const send = (message) => {
    if (pending) {
      if (performance.now() - asked < WAIT) typed.push(message);
      else refused += 1;
      if (refused) at.status.textContent = `waiting for the kernel: ${refused} ${refused > 1 ? "keys" : "key"} not taken`;
      return;
    }
    count += 1;
    pending = `${mine}-${count}`;
    asked = performance.now();
    model.send({ ...message, index: message.index ?? model.get("view").index, token: pending });
    const token = pending;
    setTimeout(() => { if (pending === token && !refused) at.status.textContent = "waiting for the kernel …"; }, 2 * WAIT);
  };
  const nextTyped = () => {
    const message = typed.shift();
    if (message) send(message);
  };

  const toggleHelp = (open = at.help.hidden) => { at.help.hidden = !open; root.focus({ preventScroll: true }); };
  fillHelp(at.help, fixed, () => toggleHelp(false));

  const edit = (open) => {
    at.editor.hidden = !open;
    at.note.value = model.get("view").note;
    (open ? at.note : root).focus({ preventScroll: true });
  };
  const nextQueue = () => {
    const place = fixed.queues.indexOf(model.get("view").queue);
    send({ do: "queue", queue: fixed.queues[(place + 1) % fixed.queues.length] });
  };
  const release = () => {
    root.blur();
    root.closest(".jp-Notebook")?.focus();
  };
  const scroll = (by) => (at.help.hidden ? at.pane : at.help).scrollBy({ top: by });
  const page = () => at.pane.clientHeight * 0.85;

  const plain = {
    ArrowRight: () => send({ do: "step", by: 1 }),
    ArrowLeft: () => send({ do: "step", by: -1 }),
    ArrowDown: () => scroll(48),
    ArrowUp: () => scroll(-48),
    PageDown: () => scroll(page()),
    PageUp: () => scroll(-page()),
    Home: () => send({ do: "end", last: false }),
    End: () => send({ do: "end", last: true }),
    Delete: () => send({ do: "clear" }),
    Backspace: () => send({ do: "clear" }),
    Escape: () => (at.help.hidden ? release() : toggleHelp(false)),
    "?": () => toggleHelp(),
    s: () => send({ do: "skip" }),
    u: () => send({ do: "unsure" }),
    n: () => edit(true),
    e: () => send({ do: "expand" }),
    q: nextQueue,
    z: () => send({ do: "undo" }),
    y: () => send({ do: "redo" }),
    Z: () => send({ do: "redo" }),
  };
  for (const [key, label] of fixed.keys) plain[key] = () => send({ do: "label", label });
  const shifted = {
    ArrowRight: () => send({ do: "unlabelled", by: 1 }),
    ArrowLeft: () => send({ do: "unlabelled", by: -1 }),
  };
  const scrolls = new Set(["ArrowUp", "ArrowDown", "PageUp", "PageDown", "ArrowLeft", "ArrowRight"]);

  const command = (event) => {
    const key = event.key.length === 1 && !event.shiftKey ? event.key.toLowerCase() : event.key;
    if (event.ctrlKey || event.metaKey) {
      if (event.altKey) return undefined;
      const letter = key.toLowerCase();
      if (letter === "z") return event.shiftKey ? plain.y : plain.z;
      return letter === "y" ? plain.y : undefined;
    }
    if (event.altKey) return undefined;
    return (event.shiftKey && shifted[key]) || plain[key];
  };

  const inNote = (event) => {
    if (event.isComposing) return;
    if (event.key === "Escape") edit(false);
    else if (event.key === "Enter" && !event.shiftKey) {
      send({ do: "note", text: at.note.value });
      edit(false);
    } else return;
    event.preventDefault();
  };

  // Jupyter listens on the document before anything below it hears a key, so this listens on the window. It takes keys
  // only while the focus is in here; of those with Ctrl only undo and redo, so that saving and the like still work.
  const onKey = (event) => {
    if (!root.contains(event.target)) return;
    if (event.target === at.note) {
      event.stopImmediatePropagation();
      inNote(event);
      return;
    }
    const found = command(event);
    const passes = (event.ctrlKey || event.metaKey || event.altKey) && event.key !== "Enter";
    if ((!found && passes) || event.key === "Tab" || /^F\d+$/.test(event.key)) return;
    event.stopImmediatePropagation();
    if (event.target === at.queue && !found) return;
    if (event.key !== "Control" && event.key !== "Shift") event.preventDefault();
    if (!found || (event.repeat && !scrolls.has(event.key))) return;
    if (!at.help.hidden && !scrolls.has(event.key) && event.key !== "Escape" && event.key !== "?") return;
    found();
  };
  window.addEventListener("keydown", onKey, true);

  const button = (keys, text, run, colour) => {
    const node = element("button", colour ? "wb-choice" : "wb-act", undefined, { tabindex: "-1", "data-name": text });
    node.append(element("kbd", "", keys), element("span", "", text));
    if (colour) node.style.setProperty("--wb-colour", colour);
    node.addEventListener("click", () => { root.focus({ preventScroll: true }); run(); });
    at.buttons.append(node);
  };
  for (const [key, label, colour] of fixed.keys) button(key, label, plain[key], colour);
  const actions = [["s", "skip"], ["u", "unsure"], ["n", "note"], ["e", "unfold"], ["z", "undo"], ["y", "redo"], ["?", "help"]];
  for (const [key, text] of actions) button(key, text, () => plain[key]());
  for (const name of fixed.queues) {
    const option = element("option", "", name);
    option.value = name;
    at.queue.append(option);
  }
  at.queue.addEventListener("change", () => { send({ do: "queue", queue: at.queue.value }); root.focus({ preventScroll: true }); });
  at.canvas.addEventListener("click", (event) => {
    const view = model.get("view");
    const place = Math.floor((event.offsetX / at.canvas.clientWidth) * view.marks.length);
    send({ do: "go", index: view.start + Math.min(Math.max(place, 0), view.marks.length - 1) });
  });

  const draw = () => {
    const view = model.get("view");
    const focused = root.contains(document.activeElement);
    at.title.textContent = view.title;
    at.title.title = view.title;
    at.place.textContent = view.place;
    const { labelled, total, unsure } = view.counts;
    const done = fixed.adjudicate ? "settled" : "labelled";
    at.counts.textContent = `${labelled} of ${total} ${done}${unsure ? `, ${unsure} unsure` : ""} · ${fixed.annotator}`;
    at.queue.value = view.queue;
    const [place, length] = view.queued;
    at.queue.title = `${place || "–"} of ${length} in this queue`;
    const top = at.pane.scrollTop;
    const task = element("details", "wb-task");
    task.append(element("summary", "", "task"), element("pre", "", view.task));
    task.open = at.pane.querySelector(".wb-task")?.open ?? false;
    const now = turnBox(view.turn, colours, send, true);
    if (view.guess) now.append(element("div", "wb-guess", `the classifier says ${view.guess}`));
    if (view.note) now.append(element("div", "wb-noted", view.note));
    at.pane.replaceChildren(
      ...(view.task ? [task] : []),
      ...view.before.map((turn) => turnBox(turn, colours, send, false)), now,
      ...view.after.map((turn) => turnBox(turn, colours, send, false)),
    );
    at.pane.scrollTop = view.index === shown ? top : now.offsetTop - at.pane.clientHeight * 0.28;
    at.votes.replaceChildren(...view.votes.map(([who, label, note, doubt]) => {
      const box = element("span", "wb-vote");
      const chip = element("span", "wb-chip", label);
      chip.style.setProperty("--wb-colour", colours[label]);
      box.append(element("b", "", who), chip, element("span", "", [doubt, note].filter(Boolean).join(": ")));
      return box;
    }));
    for (const node of at.buttons.children) {
      const on = node.dataset.name === view.turn.label || (node.dataset.name === "unsure" && view.unsure);
      node.setAttribute("aria-pressed", String(on));
      if (node.dataset.name === "unfold" || node.dataset.name === "fold") node.lastChild.textContent = view.expanded ? "fold" : "unfold";
    }
    at.status.textContent = refused ? `${view.status} (${refused} keys typed meanwhile were not taken)` : view.status;
    drawStrip(at.canvas, view, colours);
    if (focused && !root.contains(document.activeElement)) root.focus({ preventScroll: true });
    shown = view.index;
    if (pending && view.token === pending) {
      pending = "";
      refused = 0;
      nextTyped();
    }
  };
  model.on("change:view", draw);
  const resized = new ResizeObserver(() => drawStrip(at.canvas, model.get("view"), colours));
  resized.observe(root);
  el.append(root);
  requestAnimationFrame(() => { shown = -1; draw(); });
  return () => {
    window.removeEventListener("keydown", onKey, true);
    model.off("change:view", draw);
    resized.disconnect();
  };
}

export default { render };
