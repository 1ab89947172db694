// What the live view and the explorer share; stands before their scripts. Data become text nodes only: nothing here parses markup.
function element(name, text, attributes = {}) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
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

// A list box: the focus stays on the list, and the option it is at is named by aria-activedescendant. rows: () => [[key, cells], …];
// chosen: () => the key that is open; open: (key) => …; leave: what Escape does.
function listBox({ label, rows, chosen, open, leave = () => {} }) {
  const mine = `wb-${Math.random().toString(36).slice(2)}`;
  const list = element("div", undefined, { class: "wb-list", role: "listbox", tabindex: "0", "aria-label": label });
  let active = null; // a key, which stays when other rows come before it
  const place = () => rows().findIndex(([key]) => key === active);
  const mark = () => {
    const at = place();
    for (const [i, [key]] of rows().entries()) {
      const node = list.children[i];
      node?.setAttribute("aria-selected", String(key === chosen()));
      node?.classList.toggle("wb-active", i === at);
    }
    if (at >= 0 && list.children[at]) list.setAttribute("aria-activedescendant", list.children[at].id);
    else list.removeAttribute("aria-activedescendant");
  };
  const go = (to) => {
    const all = rows();
    if (!all.length) return;
    active = all[Math.min(Math.max(to, 0), all.length - 1)][0];
    mark();
    list.children[place()].scrollIntoView({ block: "nearest" });
  };
  const draw = () => {
    list.replaceChildren(...rows().map(([key, cells], i) => {
      const node = element("div", undefined, { role: "option", id: `${mine}-${i}` });
      for (const cell of cells) node.append(element("span", cell, { title: cell }));
      node.addEventListener("click", () => { active = key; mark(); open(key); });
      return node;
    }));
    if (!rows().length) list.append(element("p", "none"));
    mark();
  };
  const enter = () => { if (place() >= 0) open(active); };
  const keys = {
    ArrowDown: () => go(place() + 1), ArrowUp: () => go(Math.max(place(), 1) - 1), Home: () => go(0), End: () => go(rows().length - 1),
    Enter: enter, " ": enter, Escape: leave,
  };
  return { list, draw, mark, keys };
}

// Jupyter listens on the document before anything below it hears a key, so this listens on the window: keys that are pressed
// inside `root` are not the notebook's, but for those with Ctrl and the like, and Tab. keysOf: (target) => what keys do there.
function takeKeys(root, keysOf) {
  const onKey = (event) => {
    if (!root.contains(event.target) || event.key === "Tab" || event.ctrlKey || event.metaKey || event.altKey) return;
    event.stopImmediatePropagation();
    const act = keysOf(event.target)?.[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
  window.addEventListener("keydown", onKey, true);
  return () => window.removeEventListener("keydown", onKey, true);
}
