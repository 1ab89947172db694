// The pieces of the labelling widget. Data become text nodes only: nothing here parses markup.
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
    const kind = title ? "wb-section" : line.startsWith("|") ? "wb-table" : "";
    box.append(element("p", kind, line.replace(/^#+\s+/, "") || " "));
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
