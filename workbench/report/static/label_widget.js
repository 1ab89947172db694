// Draws what Python holds and sends it one small message a key; nothing is decided here. label_parts.js stands before this.
const WAIT = 1000; // ms: keys wait while Python has not answered, and are not taken when that lasts longer than this

function render({ model, el }) {
  const fixed = model.get("fixed");
  const { root, at } = parts();
  const colours = {};
  for (const [key, label, colour] of fixed.keys) colours[key] = colours[label] = colour;
  const mine = Math.random().toString(36).slice(2);
  let count = 0;
  let pending = ""; // token of the message that Python has not answered
  let asked = 0;
  let now = model.get("view"); // what is on the screen: what Python holds, or what comes next while it writes a label down
  let foreseen = -1; // index of the turn that was drawn without waiting
  let refused = 0;
  const typed = [];

  // One message at a time. A key is about the turn that was on the screen when it was pressed.
  const send = (message) => {
    message = { index: now.index, ...message };
    if (pending) {
      if (performance.now() - asked < WAIT) typed.push(message);
      else refused += 1;
      if (refused) at.status.textContent = `waiting for the kernel: ${refused} ${refused > 1 ? "keys" : "key"} not taken`;
      return;
    }
    count += 1;
    pending = `${mine}-${count}`;
    asked = performance.now();
    model.send({ ...message, token: pending });
    const token = pending;
    setTimeout(() => { if (pending === token && !refused) at.status.textContent = "waiting for the kernel …"; }, WAIT);
    const onward = message.do === "label" || message.do === "skip" || (message.do === "step" && message.by === 1);
    foreseen = onward && now.next && message.index === now.index ? now.next.index : -1;
    if (foreseen >= 0) draw(ahead(message.label));
  };
  // What Python is going to show, unless it says otherwise.
  const ahead = (label) => {
    const { next, marks, turn } = now;
    const marked = label && next.start === now.start;
    const place = now.index - now.start;
    return {
      ...next,
      next: null,
      status: label ? "saving …" : "",
      marks: marked ? marks.slice(0, place) + label[0] + marks.slice(place + 1) : next.marks,
      before: next.before.map((one) => (label && one.index === turn.index ? { ...one, label } : one)),
    };
  };
  const toggleHelp = (open = at.help.hidden) => { at.help.hidden = !open; root.focus({ preventScroll: true }); };
  fillHelp(at.help, fixed, () => toggleHelp(false));

  const edit = (open) => {
    at.editor.hidden = !open;
    at.note.value = now.note;
    (open ? at.note : root).focus({ preventScroll: true });
  };
  const nextQueue = () => {
    const place = fixed.queues.indexOf(now.queue);
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
    const place = Math.floor((event.offsetX / at.canvas.clientWidth) * now.marks.length);
    send({ do: "go", index: now.start + Math.min(Math.max(place, 0), now.marks.length - 1) });
  });

  const drawTurns = (view, moved) => {
    const top = at.pane.scrollTop;
    const task = element("details", "wb-task");
    task.append(element("summary", "", "task"), element("pre", "", view.task));
    task.open = at.pane.querySelector(".wb-task")?.open ?? false;
    const middle = turnBox(view.turn, colours, send, true);
    if (view.guess) middle.append(element("div", "wb-guess", `the classifier says ${view.guess}`));
    if (view.note) middle.append(element("div", "wb-noted", view.note));
    at.pane.replaceChildren(
      ...(view.task ? [task] : []),
      ...view.before.map((turn) => turnBox(turn, colours, send, false)), middle,
      ...view.after.map((turn) => turnBox(turn, colours, send, false)),
    );
    at.pane.scrollTop = moved ? middle.offsetTop - at.pane.clientHeight * 0.28 : top;
  };
  const draw = (view, moved = view.index !== now.index) => {
    now = view;
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
    drawTurns(view, moved);
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
  };
  const answered = () => {
    const view = model.get("view");
    if (foreseen >= 0 && view.index !== foreseen) typed.length = 0; // something went wrong: a person has to look first
    draw(view);
    if (view.token !== pending) return;
    pending = "";
    refused = 0;
    if (typed.length) send(typed.shift());
  };
  model.on("change:view", answered);
  const resized = new ResizeObserver(() => drawStrip(at.canvas, now, colours));
  resized.observe(root);
  el.append(root);
  requestAnimationFrame(() => draw(model.get("view"), true));
  return () => {
    window.removeEventListener("keydown", onKey, true);
    model.off("change:view", answered);
    resized.disconnect();
  };
}

export default { render };
